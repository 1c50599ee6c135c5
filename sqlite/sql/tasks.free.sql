-- Frees a hold that has run out, and counts the death of its holder; the last
-- one allowed ends the task.
-- ?1 shard, ?2 workspace, ?3 command, ?4 queue, ?5 task, ?6 epoch, ?7 deaths allowed
-- do
UPDATE holdfast_task AS k
   SET state = CASE WHEN k.deaths + 1 >= ?7 THEN 'dead' ELSE 'due' END,
       deaths = k.deaths + 1, version = k.version + 1, due_at = {now},
       error = 'the holder ' || k.holder || ' did not come back',
       holder = NULL, until = NULL, updated_at = {now}
 WHERE k.shard = ?1 AND k.workspace = ?2 AND k.queue = ?4 AND k.id = ?5
   AND k.epoch = ?6 AND k.holder IS NOT NULL AND k.until <= {now}
RETURNING state, version, epoch, failures, deaths, coalesce(output, ''), coalesce(error, '')
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$task/' || ?4 || '/' || ?5, k.version, 'died',
       json_object('epoch', ?6, 'state', k.state, 'deaths', k.deaths), NULL, NULL, NULL, k.updated_at
  FROM holdfast_task AS k
 WHERE k.shard = ?1 AND k.workspace = ?2 AND k.queue = ?4 AND k.id = ?5
-- else
SELECT coalesce(k.state, ''), coalesce(k.version, -1), coalesce(k.epoch, 0), coalesce(k.failures, 0), coalesce(k.deaths, 0),
       coalesce(k.output, ''), coalesce(k.error, '')
  FROM (SELECT 1) LEFT JOIN holdfast_task AS k
    ON k.shard = ?1 AND k.workspace = ?2 AND k.queue = ?4 AND k.id = ?5
