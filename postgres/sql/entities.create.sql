-- Creates entities, each with its first event, unless there is one.
-- $4 lifecycle, $5 entity, $6 status, $7 data, $8 correlation, $9 causation,
-- $10 actor
-- $11 revision, $12 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[],
                         $8::text[], $9::text[], $10::text[], $11::bigint[], $12::text[])
             WITH ORDINALITY AS m(shard, workspace, command, lifecycle, entity, status, data,
                                  correlation, causation, actor, revision, marks, member)
     WHERE {known}
), t AS MATERIALIZED (
    SELECT {now} AS now
), made AS (
    INSERT INTO {schema}.entity
        (shard, workspace, lifecycle, id, status, version, data, created_at, updated_at)
    SELECT m.shard, m.workspace, m.lifecycle, m.entity, m.status, 0, m.data::jsonb, t.now, t.now
      FROM m, t
     WHERE CASE WHEN EXISTS (SELECT 1 FROM {schema}.entity e WHERE e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace
                                                               AND e.lifecycle = m.lifecycle AND e.id = m.entity)
                THEN false
                ELSE {enter}(pg_catalog.hashtextextended('entity/' || m.shard::text || '/' || m.workspace || '/' || m.lifecycle || '/' || m.entity, 0)){entered} END
     ORDER BY m.shard, m.workspace, m.lifecycle, m.entity
    ON CONFLICT (shard, workspace, lifecycle, id) DO NOTHING
    RETURNING shard, workspace, lifecycle, id, status, version, data, created_at, updated_at
), written AS (
    INSERT INTO {schema}.history
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT m.shard, m.command, 0, m.workspace, '$entity/' || m.lifecycle || '/' || m.entity, made.version, 'created',
           pg_catalog.json_build_object('to', made.status), m.correlation, m.causation, m.actor, made.created_at
      FROM m JOIN made ON made.shard = m.shard AND made.workspace = m.workspace
                      AND made.lifecycle = m.lifecycle AND made.id = m.entity
    RETURNING shard, id, workspace, stream, version
){mark}
SELECT m.member,
       CASE WHEN made.id IS NOT NULL THEN 1 WHEN e.id IS NOT NULL THEN 0 ELSE 2 END,
       coalesce(made.status, e.status, ''), coalesce(made.version, e.version, -1),
       coalesce(made.data, e.data, 'null')::text,
       coalesce(made.created_at, e.created_at, 'epoch'), coalesce(made.updated_at, e.updated_at, 'epoch')
  FROM m
  LEFT JOIN made ON made.shard = m.shard AND made.workspace = m.workspace
                AND made.lifecycle = m.lifecycle AND made.id = m.entity
  LEFT JOIN {schema}.entity e ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace
                             AND e.lifecycle = m.lifecycle AND e.id = m.entity
