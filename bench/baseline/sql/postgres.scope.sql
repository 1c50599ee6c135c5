-- $1 shard, $2 workspace, $3 kind, $4 scope
SELECT version, state::text FROM {schema}.scope WHERE shard = $1::smallint AND workspace = $2::text AND kind = $3::text AND id = $4::text
