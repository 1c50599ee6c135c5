-- Inserts a run with its first step and its events.

-- do
INSERT INTO holdfast_run
    (shard, workspace, id, definition, key, status, version, input, state, memo, step, visit, cancel_requested, created_at, started_at, updated_at)
SELECT :shard, :workspace, :run, :definition, :key, :status, :then_event IS NOT NULL, :input, :state, :memo, :begin, :begin_visit, 0, t.now,
       CASE WHEN :status <> 'PENDING' THEN t.now END, t.now
  FROM (SELECT {now} AS now) AS t
 WHERE true
ON CONFLICT (shard, workspace, key) WHERE key IS NOT NULL DO NOTHING
RETURNING id, version,
          {include runs/begun_until updated_at},
          updated_at
-- also
{include runs/begin_step :did4}
-- also
{include history/write}
{include runs/select_step_events -1; :did4}
