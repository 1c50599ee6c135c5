-- Reads the feed after a position, and one row beyond the limit. Each row has the current end of the feed, and the
-- last row has nothing else but the last position before a gap that :after is in, or -1 (see the table holdfast_feed_gap); the counter and the events are of one snapshot. Versions below the first
-- retained one are gone, even if they are not yet deleted. Data of more than :bytes is left out.
-- The feed is read in the order of its key, row by row: a sort would read all rows, with their data, before it returns the first.
SELECT coalesce((SELECT x.last FROM holdfast_sequence AS x WHERE x.shard = :shard AND x.workspace = :workspace), 0) AS last,
       coalesce((SELECT g.last FROM holdfast_feed_gap AS g WHERE g.shard = :shard AND g.workspace = :workspace AND g.last < :after AND g.next > :after LIMIT 1), -1),
       9223372036854775807 AS position, '', -1, '', 'null', '', '', '', 0, ''
UNION ALL
SELECT coalesce((SELECT x.last FROM holdfast_sequence AS x WHERE x.shard = :shard AND x.workspace = :workspace), 0), -1,
       f.position, f.stream, f.version, e.name, CASE WHEN octet_length(e.data) <= :bytes THEN e.data ELSE '' END, coalesce(e.correlation, ''), coalesce(e.causation, ''), coalesce(e.actor, ''), e.at, coalesce(e.subject, '')
  FROM holdfast_feed AS f
 CROSS JOIN holdfast_event AS e
    ON e.shard = :shard AND e.workspace = :workspace AND e.stream = f.stream AND e.version = f.version
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.position > :after
   AND e.version >= (SELECT s.first FROM holdfast_stream AS s WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = f.stream)
 ORDER BY 3
 LIMIT :limit + 1
