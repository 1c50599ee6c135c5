-- Starts a run, with its first steps, unless there is one under its key: that one is
-- answered.
-- ?1 shard, ?2 workspace, ?3 command, ?4 run, ?5 definition, ?6 key, ?7 input, ?8 holder, ?9 lease in ms, ?10 plan
-- do
INSERT INTO holdfast_run
    (shard, workspace, id, definition, key, status, version, input, state, memo, output, error, step, visit, cancel_requested,
     created_at, started_at, finished_at, prune_at, updated_at)
SELECT ?1, ?2, ?4, ?5, ?6, ?10 ->> '$.run.status', json_array_length(?10, '$.events') - 1, ?7, ?10 -> '$.run.state', ?10 -> '$.run.memo',
       ?10 -> '$.run.output', ?10 ->> '$.run.error', ?10 ->> '$.run.step', ?10 ->> '$.run.visit', 0, t.now,
       CASE WHEN ?10 ->> '$.run.status' <> 'PENDING' THEN t.now END, CASE WHEN ?10 ->> '$.run.over' THEN t.now END,
       CASE WHEN ?10 ->> '$.run.over' THEN t.now + (?10 ->> '$.run.keep') END, t.now
  FROM (SELECT {now} AS now) AS t
 WHERE true
ON CONFLICT (shard, workspace, key) WHERE key IS NOT NULL DO NOTHING
RETURNING id
-- also
INSERT INTO holdfast_step
    (shard, workspace, run, name, visit, n, type, handler, status, input, output, error, next, attempts, failures, holder, epoch, until, deaths,
     timeout, taken_at, due_at, deadline, begun, uncertain, safety, unknown, signal, created_at, started_at, finished_at)
SELECT ?1, ?2, ?4, x.value ->> 'name', x.value ->> 'visit', x.value ->> 'n', x.value ->> 'type', x.value ->> 'handler', x.value ->> 'status',
       x.value -> 'input', x.value -> 'output', x.value ->> 'error', x.value ->> 'next', x.value ->> 'attempts', 0,
       CASE WHEN x.value ->> 'held' THEN ?8 END, x.value ->> 'held',
       CASE WHEN x.value ->> 'held' THEN r.updated_at + min(?9, x.value ->> 'timeout') END, 0,
       x.value ->> 'timeout', CASE WHEN x.value ->> 'held' THEN r.updated_at END,
       CASE WHEN EXISTS (SELECT 1 FROM holdfast_signal AS g
                          WHERE g.shard = ?1 AND g.workspace = ?2 AND g.run = ?4 AND g.type = x.value ->> 'signal' AND g.taken IS NULL
                            AND g.id <> coalesce(?10 ->> '$.signal', '')) THEN r.updated_at
            ELSE coalesce(x.value ->> 'at', r.updated_at + (x.value ->> 'due')) END,
       r.updated_at + (x.value ->> 'wait'), x.value ->> 'begun', 0, x.value ->> 'safety', x.value ->> 'unknown', x.value ->> 'signal', r.updated_at,
       CASE WHEN x.value ->> 'status' <> 'PENDING' THEN r.updated_at END, CASE WHEN x.value ->> 'over' THEN r.updated_at END
  FROM holdfast_run AS r JOIN json_each(?10, '$.add') AS x
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4
-- also
INSERT INTO holdfast_effect AS x (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at)
SELECT ?1, ?2, ?10 ->> '$.body.operation', '$body', 0, ?10 ->> '$.body.epoch', 'begun', ?10 ->> '$.body.policy', {now}
 WHERE ?10 ->> '$.body.operation' IS NOT NULL
ON CONFLICT (shard, workspace, operation, name, ordinal) DO UPDATE
   SET state = 'begun', epoch = excluded.epoch, policy = excluded.policy, begun_at = excluded.begun_at, result = NULL, ended_at = NULL
 WHERE x.state = 'notDone'
-- also
INSERT INTO holdfast_approval (shard, workspace, run, step, visit, prompt, requesters, status, expires_at, created_at)
SELECT ?1, ?2, ?4, ?10 ->> '$.ask.step', ?10 ->> '$.ask.visit', ?10 ->> '$.ask.prompt', ?10 -> '$.ask.requesters', 'pending',
       r.updated_at + (?10 ->> '$.ask.within'), r.updated_at
  FROM holdfast_run AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4 AND ?10 ->> '$.ask.step' IS NOT NULL
-- also
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, e.key, ?2, '$run/' || ?4, r.version - json_array_length(?10, '$.events') + e.key + 1, e.value ->> 'name', e.value -> 'data', NULL, NULL, NULL, r.updated_at
  FROM holdfast_run AS r JOIN json_each(?10, '$.events') AS e
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4
-- then
SELECT r.id, r.version, coalesce((SELECT max(s.until) FROM holdfast_step AS s WHERE s.shard = ?1 AND s.workspace = ?2 AND s.run = ?4), 0), r.updated_at
  FROM holdfast_run AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4
-- else
SELECT coalesce(r.id, ''), 0, 0, {now}
  FROM (SELECT 1) LEFT JOIN holdfast_run AS r ON r.shard = ?1 AND r.workspace = ?2 AND r.key = ?6
