-- Reads the feed behind a position, and one row beyond the limit. Each row tells where the feed stands, and
-- the last of all tells nothing else; the count and what it counts are of one snapshot.
-- What is below the first version kept is gone, also where it is not yet deleted.
-- The feed is read in the order of its key, row by row: a sort would read all rows, with their data, before it has the first.
-- ?1 shard, ?2 workspace, ?3 after, ?4 limit
-- do
SELECT coalesce((SELECT x.last FROM holdfast_sequence AS x WHERE x.shard = ?1 AND x.workspace = ?2), 0) AS last,
       9223372036854775807 AS position, '', -1, '', 'null', '', '', '', 0, ''
UNION ALL
SELECT coalesce((SELECT x.last FROM holdfast_sequence AS x WHERE x.shard = ?1 AND x.workspace = ?2), 0),
       f.position, f.stream, f.version, e.name, e.data, coalesce(e.correlation, ''), coalesce(e.causation, ''), coalesce(e.actor, ''), e.at, coalesce(e.subject, '')
  FROM holdfast_feed AS f
 CROSS JOIN holdfast_event AS e
    ON e.shard = ?1 AND e.workspace = ?2 AND e.stream = f.stream AND e.version = f.version
 WHERE f.shard = ?1 AND f.workspace = ?2 AND f.position > ?3
   AND e.version >= (SELECT s.first FROM holdfast_stream AS s WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = f.stream)
 ORDER BY 2
 LIMIT +?4 + 1
