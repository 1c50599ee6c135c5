-- Starts runs at their first step, as runs.start does by a plan: unless one exists under the key;
-- then returns that one, or nothing if it was created just now and is not visible yet.
WITH {members}, {include store/time}, made AS (
    INSERT INTO {schema}.run
        (shard, workspace, id, definition, key, status, version, input, state, memo, step, visit, cancel_requested, created_at, started_at, updated_at)
    SELECT m.shard, m.workspace, m.run, m.definition, m.key, m.status, CASE WHEN m.then_event IS NULL THEN 0 ELSE 1 END, m.input::json, m.state::json, m.memo::json,
           m.begin, m.begin_visit, false, t.now, CASE WHEN m.status <> 'PENDING' THEN t.now END, t.now
      FROM t, m
     WHERE m.key IS NULL
        OR CASE WHEN EXISTS (SELECT 1 FROM {schema}.run r WHERE r.shard = m.shard AND r.workspace = m.workspace AND r.key = m.key)
                THEN false
                ELSE {enter}({include runs/key_lock m.}){entered} END
     ORDER BY m.shard, m.workspace, m.key
    ON CONFLICT (shard, workspace, key) WHERE key IS NOT NULL DO NOTHING
    RETURNING shard, workspace, id
), ok AS MATERIALIZED (
    SELECT m.*, t.now
      FROM t, m JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.id = m.run
), {include runs/begin_step ok.},
{include history/write_without_cause}
    {include runs/select_step_events ok.; -1}
    {mark}
SELECT m.member,
       CASE WHEN ok.member IS NOT NULL THEN 1 WHEN r.id IS NOT NULL THEN 0 ELSE 2 END,
       coalesce(ok.run, r.id, ''), CASE WHEN m.then_event IS NULL THEN 0 ELSE 1 END::bigint, {include runs/begun_until ok.}, t.now
  FROM t, m
  LEFT JOIN ok ON ok.member = m.member
  LEFT JOIN LATERAL (
       SELECT r.id FROM {schema}.run r WHERE r.shard = m.shard AND r.workspace = m.workspace AND r.key = m.key LIMIT 1) AS r ON true
