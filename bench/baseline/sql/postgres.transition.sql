-- $1 shard, $2 workspace, $3 id of the event, $4 lifecycle, $5 entity, $6 from,
-- $7 to, $8 name of the event
WITH moved AS (
    UPDATE {schema}.entity
       SET status = $7::text, version = version + 1, updated_at = clock_timestamp()
     WHERE shard = $1::smallint AND workspace = $2::text AND lifecycle = $4::text AND id = $5::text AND status = $6::text
    RETURNING status, version, data, created_at, updated_at
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT $1, $3::uuid, 0, $2, '$entity/' || $4 || '/' || $5, version, $8::text,
           json_build_object('from', $6, 'to', $7, 'note', NULL), updated_at
      FROM moved
)
SELECT status, version, data, created_at, updated_at FROM moved
