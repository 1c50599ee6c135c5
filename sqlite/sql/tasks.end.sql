-- Ends a hold that has not run out: ?6 says how. 'done' keeps the output,
-- 'release' frees the task unchanged, 'fail' counts a failure and frees it, or
-- ends it as failed where the failures exceed the retries.
-- ?1 shard, ?2 workspace, ?3 command, ?4 queue, ?5 task, ?6 how, ?7 epoch,
-- ?8 output, ?9 error, ?10 delay in ms, ?11 retries
-- do
UPDATE holdfast_task AS k
   SET state = CASE WHEN ?6 = 'done' THEN 'done'
                    WHEN ?6 = 'fail' AND k.failures + 1 > ?11 THEN 'failed'
                    ELSE 'due' END,
       failures = k.failures + (?6 = 'fail'),
       version = k.version + 1, output = ?8, error = ?9, due_at = {now} + ?10,
       holder = NULL, until = NULL, updated_at = {now}
 WHERE k.shard = ?1 AND k.workspace = ?2 AND k.queue = ?4 AND k.id = ?5
   AND k.epoch = ?7 AND k.until > {now}
RETURNING state, version, epoch, failures, deaths, coalesce(output, ''), coalesce(error, '')
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$task/' || ?4 || '/' || ?5, k.version,
       CASE ?6 WHEN 'done' THEN 'settled' WHEN 'fail' THEN 'failed' ELSE 'released' END,
       json_object('epoch', ?7, 'state', k.state, 'failures', k.failures), NULL, NULL, NULL, k.updated_at
  FROM holdfast_task AS k
 WHERE k.shard = ?1 AND k.workspace = ?2 AND k.queue = ?4 AND k.id = ?5
-- else
SELECT coalesce(k.state, ''), coalesce(k.version, -1), coalesce(k.epoch, 0), coalesce(k.failures, 0), coalesce(k.deaths, 0),
       coalesce(k.output, ''), coalesce(k.error, '')
  FROM (SELECT 1) LEFT JOIN holdfast_task AS k
    ON k.shard = ?1 AND k.workspace = ?2 AND k.queue = ?4 AND k.id = ?5
