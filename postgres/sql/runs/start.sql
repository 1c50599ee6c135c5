-- Starts a run with its first steps, unless one exists under its key: then returns that one,
-- or nothing if it was created just now and is not visible yet.
WITH {members}, {include store/time}, made AS (
    INSERT INTO {schema}.run
        (shard, workspace, id, definition, key, status, version, input, state, memo, output, error, step, visit, cancel_requested,
         created_at, started_at, finished_at, prune_at, updated_at)
    SELECT m.shard, m.workspace, m.run, m.definition, m.key, p.v ->> 'status'::text, pg_catalog.json_array_length(m.plan::json -> 'events'::text) - 1, m.input::json, p.v -> 'state'::text, p.v -> 'memo'::text,
           p.v -> 'output'::text, p.v ->> 'error'::text, p.v ->> 'step'::text, (p.v ->> 'visit'::text)::bigint, false, t.now,
           CASE WHEN p.v ->> 'status'::text <> 'PENDING' THEN t.now END, CASE WHEN (p.v ->> 'over'::text)::boolean THEN t.now END,
           CASE WHEN (p.v ->> 'over'::text)::boolean THEN t.now + (p.v ->> 'keep'::text)::bigint::float8 * interval '1 ms' END, t.now
      FROM t, m CROSS JOIN LATERAL (SELECT m.plan::json -> 'run'::text) AS p(v)
     WHERE m.key IS NULL
        OR CASE WHEN EXISTS (SELECT 1 FROM {schema}.run r WHERE r.shard = m.shard AND r.workspace = m.workspace AND r.key = m.key)
                THEN false
                ELSE {enter}({include runs/key_lock m.}){entered} END
     ORDER BY m.shard, m.workspace, m.key
    ON CONFLICT (shard, workspace, key) WHERE key IS NOT NULL DO NOTHING
    RETURNING shard, workspace, id
), ok AS MATERIALIZED (
    SELECT m.member, m.shard, m.workspace, m.run, m.holder, m.lease, m.plan::json AS plan, -1::bigint AS version
      FROM m JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.id = m.run
), {include runs/add_steps ok.shard},
{include runs/begin_body},
{include runs/add_approval},
{include history/write}
    {include runs/select_plan_events}
    {due_notices}
SELECT m.member,
       CASE WHEN ok.member IS NOT NULL THEN 1 WHEN r.id IS NOT NULL THEN 0 ELSE 2 END,
       coalesce(ok.run, r.id, ''), pg_catalog.json_array_length(m.plan::json -> 'events'::text) - 1,
       coalesce((SELECT pg_catalog.max(added.until) FROM added WHERE added.shard = m.shard AND added.workspace = m.workspace AND added.run = m.run), 'epoch'), t.now
  FROM t, m
  LEFT JOIN ok ON ok.member = m.member
  LEFT JOIN LATERAL (
       SELECT r.id FROM {schema}.run r WHERE r.shard = m.shard AND r.workspace = m.workspace AND r.key = m.key LIMIT 1) AS r ON true
