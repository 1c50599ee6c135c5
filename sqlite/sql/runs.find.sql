-- The run that was started under a key.
-- ?1 shard, ?2 workspace, ?3 key
-- do
SELECT r.id FROM holdfast_run AS r WHERE r.shard = ?1 AND r.workspace = ?2 AND r.key = ?3
