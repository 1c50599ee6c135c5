-- Reads the feed behind a position, and one row beyond the limit. Each row tells where the feed stands, and
-- the last of all tells nothing else; the count and what it counts are of one snapshot.
-- What is below the first version kept is gone, also where it is not yet deleted.
-- The feed is read in the order of its key, row by row: a sort would read all rows, with their data, before it has the first.
SELECT coalesce((SELECT x.last FROM holdfast_sequence AS x WHERE x.shard = :shard AND x.workspace = :workspace), 0) AS last,
       9223372036854775807 AS position, '', -1, '', 'null', '', '', '', 0, ''
UNION ALL
SELECT coalesce((SELECT x.last FROM holdfast_sequence AS x WHERE x.shard = :shard AND x.workspace = :workspace), 0),
       f.position, f.stream, f.version, e.name, e.data, coalesce(e.correlation, ''), coalesce(e.causation, ''), coalesce(e.actor, ''), e.at, coalesce(e.subject, '')
  FROM holdfast_feed AS f
 CROSS JOIN holdfast_event AS e
    ON e.shard = :shard AND e.workspace = :workspace AND e.stream = f.stream AND e.version = f.version
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.position > :after
   AND e.version >= (SELECT s.first FROM holdfast_stream AS s WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = f.stream)
 ORDER BY 2
 LIMIT :limit + 1
