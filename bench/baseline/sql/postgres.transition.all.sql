-- A member: $1 shard, $2 workspace, $3 id of the event, $4 lifecycle, $5 entity,
-- $6 from, $7 to, $8 name of the event
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
             WITH ORDINALITY AS m(shard, workspace, event, lifecycle, entity, source, target, name, member)
), moved AS (
    UPDATE {schema}.entity e
       SET status = m.target, version = e.version + 1, updated_at = clock_timestamp()
      FROM m
     WHERE e.shard = m.shard AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity AND e.status = m.source
    RETURNING m.member, m.event, m.source, m.name, e.shard, e.workspace, e.lifecycle, e.id, e.status, e.version, e.data, e.created_at, e.updated_at
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT shard, event, 0, workspace, '$entity/' || lifecycle || '/' || id, version, name,
           json_build_object('from', source, 'to', status, 'note', NULL), updated_at
      FROM moved
)
SELECT member, status, version, data, created_at, updated_at FROM moved
