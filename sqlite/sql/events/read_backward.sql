-- Reads a stream backward from a version.
-- Both tables are read in the order of an index, row by row: a sort would read all rows, with their data, before it returns the first.
SELECT e.id, e.version, e.name, e.data, coalesce(e.correlation, ''), coalesce(e.causation, ''), coalesce(e.actor, ''), e.at, coalesce(e.subject, '')
  FROM holdfast_event AS e
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.stream = :stream AND e.version <= :from
   AND e.version >= (SELECT s.first FROM holdfast_stream AS s WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream)
UNION ALL
SELECT h.id, h.version, h.name, h.data, coalesce(h.correlation, ''), coalesce(h.causation, ''), coalesce(h.actor, ''), h.at, ''
  FROM holdfast_history AS h
 WHERE h.shard = :shard AND h.workspace = :workspace AND h.stream = :stream AND h.version <= :from
 ORDER BY 2 DESC
 LIMIT :limit
