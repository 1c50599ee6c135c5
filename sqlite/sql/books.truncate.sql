-- Drops the events of a stream below a version, unless somebody is closing it.
-- The last event stays.
-- ?1 shard, ?2 workspace, ?3 stream, ?4 first version to keep
-- do
UPDATE holdfast_stream AS s
   SET first = ?4
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?3
   AND s.first < ?4 AND s.head >= ?4
   AND (s.state <> 'closing' OR s.until <= {now})
RETURNING first
