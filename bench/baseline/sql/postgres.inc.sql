-- $1 shard, $2 workspace, $3 id of the event, $4 kind, $5 scope, $6 field, $7 by
WITH moved AS (
    UPDATE {schema}.scope
       SET version = version + 1, updated_at = clock_timestamp(),
           state = state || jsonb_build_object($6::text, (state ->> $6::text)::bigint + $7::bigint)
     WHERE shard = $1::smallint AND workspace = $2::text AND kind = $4::text AND id = $5::text AND state ? $6
    RETURNING version, (state ->> $6)::bigint AS value, updated_at
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT $1, $3::uuid, 0, $2, '$scope/' || $4 || '/' || $5, version, 'inc',
           json_build_object('field', $6, 'by', $7, 'value', value), updated_at
      FROM moved
)
SELECT value FROM moved
