-- The run that was started under a key.
-- $1 shard, $2 workspace, $3 key
SELECT r.id FROM {schema}.run r WHERE r.shard = $1::smallint AND r.workspace = $2::text AND r.key = $3::text
