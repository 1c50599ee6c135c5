-- Reads a stream backward from a version on.
-- Both tables are read in the order of an index, row by row: a sort would read all rows, with their data, before it has the first.
-- ?1 shard, ?2 workspace, ?3 stream, ?4 last version, ?5 limit
-- do
SELECT e.id, e.version, e.name, e.data, coalesce(e.correlation, ''), coalesce(e.causation, ''), coalesce(e.actor, ''), e.at, coalesce(e.subject, '')
  FROM holdfast_event AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.stream = ?3 AND e.version <= ?4
   AND e.version >= (SELECT s.first FROM holdfast_stream AS s WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?3)
UNION ALL
SELECT h.id, h.version, h.name, h.data, coalesce(h.correlation, ''), coalesce(h.causation, ''), coalesce(h.actor, ''), h.at, ''
  FROM holdfast_history AS h
 WHERE h.shard = ?1 AND h.workspace = ?2 AND h.stream = ?3 AND h.version <= ?4
 ORDER BY 2 DESC
 LIMIT +?5
