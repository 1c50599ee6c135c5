-- A member: $1 shard, $2 workspace, $3 id of the event, $4 lifecycle, $5 entity,
-- $6 status, $7 data
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[])
             WITH ORDINALITY AS m(shard, workspace, event, lifecycle, entity, status, data, member)
), made AS (
    INSERT INTO {schema}.entity (shard, workspace, lifecycle, id, status, version, data, created_at, updated_at)
    SELECT m.shard, m.workspace, m.lifecycle, m.entity, m.status, 0, m.data::jsonb, t.now, t.now
      FROM m, (SELECT clock_timestamp() AS now) AS t
    ON CONFLICT (shard, workspace, lifecycle, id) DO NOTHING
    RETURNING shard, workspace, lifecycle, id, status, version, data, created_at, updated_at
), won AS (
    SELECT m.member, m.event, made.*
      FROM m JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.lifecycle = m.lifecycle AND made.id = m.entity
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT shard, event, 0, workspace, '$entity/' || lifecycle || '/' || id, version, 'created', json_build_object('to', status), created_at
      FROM won
)
SELECT member, status, version, data, created_at, updated_at FROM won
