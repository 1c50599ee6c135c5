-- Notes how far the events of a stream are deleted.
-- ?1 shard, ?2 workspace, ?3 stream, ?4 from, ?5 to a version, not included
-- do
UPDATE holdfast_stream AS s
   SET pruned = ?5
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?3
   AND s.pruned = ?4 AND s.first >= ?5
RETURNING pruned
