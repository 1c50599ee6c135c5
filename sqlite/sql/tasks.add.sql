-- Adds a task, with its first event, unless there is one.
-- ?1 shard, ?2 workspace, ?3 command, ?4 queue, ?5 task, ?6 input, ?7 delay in ms
-- do
INSERT INTO holdfast_task
    (shard, workspace, queue, id, version, state, due_at, input, failures, epoch, deaths, created_at, updated_at)
SELECT ?1, ?2, ?4, ?5, 0, 'due', t.now + ?7, ?6, 0, 0, 0, t.now, t.now
  FROM (SELECT {now} AS now) AS t
 WHERE true
ON CONFLICT (shard, workspace, queue, id) DO NOTHING
RETURNING state, version, epoch, failures, deaths, coalesce(output, ''), coalesce(error, '')
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$task/' || ?4 || '/' || ?5, 0, 'added', '{}', NULL, NULL, NULL, k.created_at
  FROM holdfast_task AS k
 WHERE k.shard = ?1 AND k.workspace = ?2 AND k.queue = ?4 AND k.id = ?5
-- else
SELECT k.state, k.version, k.epoch, k.failures, k.deaths, coalesce(k.output, ''), coalesce(k.error, '')
  FROM holdfast_task AS k
 WHERE k.shard = ?1 AND k.workspace = ?2 AND k.queue = ?4 AND k.id = ?5
