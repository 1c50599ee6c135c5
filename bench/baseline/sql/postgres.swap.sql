-- $1 shard, $2 workspace, $3 id of the event, $4 kind, $5 scope, $6 version, $7 state
WITH moved AS (
    UPDATE {schema}.scope
       SET version = version + 1, updated_at = clock_timestamp(), state = $7::text::jsonb
     WHERE shard = $1::smallint AND workspace = $2::text AND kind = $4::text AND id = $5::text AND version = $6::bigint
    RETURNING version, updated_at
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT $1, $3::uuid, 0, $2, '$scope/' || $4 || '/' || $5, version, 'put', '{}', updated_at
      FROM moved
)
SELECT version FROM moved
