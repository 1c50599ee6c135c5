-- $1 shard, $2 workspace, $3 id of the event, $4 lifecycle, $5 entity, $6 status, $7 data
WITH made AS (
    INSERT INTO {schema}.entity (shard, workspace, lifecycle, id, status, version, data, created_at, updated_at)
    SELECT $1::smallint, $2::text, $4::text, $5::text, $6::text, 0, $7::text::jsonb, now, now
      FROM (SELECT clock_timestamp() AS now) AS t
    ON CONFLICT (shard, workspace, lifecycle, id) DO NOTHING
    RETURNING status, version, data, created_at, updated_at
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT $1, $3::uuid, 0, $2, '$entity/' || $4 || '/' || $5, version, 'created', json_build_object('to', status), created_at
      FROM made
)
SELECT status, version, data, created_at, updated_at FROM made
