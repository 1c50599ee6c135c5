-- $1 shard, $2 workspace, $3 kind, $4 scope, $5 state
INSERT INTO {schema}.scope (shard, workspace, kind, id, version, state, created_at, updated_at)
VALUES ($1, $2, $3, $4, 0, $5::text::jsonb, clock_timestamp(), clock_timestamp())
ON CONFLICT (shard, workspace, kind, id) DO UPDATE
   SET version = scope.version + 1, state = excluded.state, updated_at = excluded.updated_at
