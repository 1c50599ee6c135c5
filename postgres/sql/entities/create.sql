-- Creates entities that do not exist, each with its first event.
WITH {members}, {include store/time}, made AS (
    INSERT INTO {schema}.entity
        (shard, workspace, lifecycle, id, status, version, data, created_at, updated_at)
    SELECT m.shard, m.workspace, m.lifecycle, m.entity, m.status, 0, m.data::jsonb, t.now, t.now
      FROM m, t
     WHERE CASE WHEN EXISTS (SELECT 1 FROM {schema}.entity e WHERE e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace
                                                               AND e.lifecycle = m.lifecycle AND e.id = m.entity)
                THEN false
                ELSE {enter}({include entities/id_lock m.}){entered} END
     ORDER BY m.shard, m.workspace, m.lifecycle, m.entity
    ON CONFLICT (shard, workspace, lifecycle, id) DO NOTHING
    RETURNING shard, workspace, lifecycle, id, status, version, data, created_at, updated_at
), {include history/write}
    SELECT m.shard, m.command, 0, m.workspace, '$entity/' || m.lifecycle || '/' || m.entity, made.version, 'created',
           pg_catalog.json_build_object('to', made.status), m.correlation, m.causation, m.actor, made.created_at
      FROM m JOIN made ON made.shard = m.shard AND made.workspace = m.workspace
                      AND made.lifecycle = m.lifecycle AND made.id = m.entity
    {due_notices}
SELECT m.member,
       CASE WHEN made.id IS NOT NULL THEN 1 WHEN e.id IS NOT NULL THEN 0 ELSE 2 END,
       coalesce(made.status, e.status, ''), coalesce(made.version, e.version, -1),
       coalesce(made.data, e.data, 'null')::text,
       coalesce(made.created_at, e.created_at, 'epoch'), coalesce(made.updated_at, e.updated_at, 'epoch')
  FROM m LEFT JOIN made ON made.shard = m.shard AND made.workspace = m.workspace
                AND made.lifecycle = m.lifecycle AND made.id = m.entity
  LEFT JOIN {schema}.entity e ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace
                             AND e.lifecycle = m.lifecycle AND e.id = m.entity
