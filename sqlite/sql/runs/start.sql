-- Starts a run with its first steps, unless one exists under its key: then returns that
-- one.
-- do
INSERT INTO holdfast_run
    (shard, workspace, id, definition, key, status, version, input, state, memo, output, error, step, visit, cancel_requested,
     created_at, started_at, finished_at, prune_at, updated_at)
SELECT :shard, :workspace, :run, :definition, :key, :plan ->> '$.run.status', json_array_length(:plan, '$.events') - 1, :input, :plan -> '$.run.state', :plan -> '$.run.memo',
       :plan -> '$.run.output', :plan ->> '$.run.error', :plan ->> '$.run.step', :plan ->> '$.run.visit', 0, t.now,
       CASE WHEN :plan ->> '$.run.status' <> 'PENDING' THEN t.now END, CASE WHEN :plan ->> '$.run.over' THEN t.now END,
       CASE WHEN :plan ->> '$.run.over' THEN t.now + (:plan ->> '$.run.keep') END, t.now
  FROM (SELECT {now} AS now) AS t
 WHERE true
ON CONFLICT (shard, workspace, key) WHERE key IS NOT NULL DO NOTHING
RETURNING id
-- also
{include runs/add_steps {include runs/step_due_at}}
-- also
{include runs/begin_body}
-- also
{include runs/add_approval}
-- also
{include history/write}
{include runs/select_plan_events}
-- then
SELECT r.id, r.version, coalesce((SELECT max(s.until) FROM holdfast_step AS s WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run), 0), r.updated_at
  {include runs/by_id}
-- else
SELECT coalesce(r.id, ''), 0, 0, {now}
  FROM (SELECT 1) LEFT JOIN holdfast_run AS r ON r.shard = :shard AND r.workspace = :workspace AND r.key = :key
