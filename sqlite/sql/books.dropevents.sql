-- Deletes events of a stream that are below the first one kept.
-- ?1 shard, ?2 workspace, ?3 stream, ?4 from, ?5 to a version, not included
-- do
DELETE FROM holdfast_event AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.stream = ?3 AND e.version >= ?4 AND e.version < ?5
   AND EXISTS (SELECT 1 FROM holdfast_stream AS s
                WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?3 AND s.first >= ?5)
