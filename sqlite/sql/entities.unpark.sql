-- Ends the uncertainty of an operation, once nothing of it is unknown any more: it
-- is due again, or ends where it is told to. That is another epoch: the late holder has not ended it.
-- ?1 shard, ?2 workspace, ?3 command, ?4 lifecycle, ?5 entity, ?6 operation, ?7 epoch, ?8 how: resume, success or back, ?9 to (NULL: back), ?10 event,
-- ?11 outcome, ?12 note, ?13 correlation, ?14 causation, ?15 actor
-- do
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$entity/' || ?4 || '/' || ?5, e.version + 1,
       CASE WHEN ?8 = 'resume' AND e.begun > 0 THEN 'resumed' ELSE ?10 END,
       json_object('from', e.status, 'to', CASE WHEN ?8 = 'success' THEN ?9 WHEN ?8 = 'back' OR e.begun = 0 THEN coalesce(?9, e.revert) ELSE e.status END,
                   'step', e.step, 'requester', e.requester, 'operation', e.operation, 'epoch', e.epoch + 1,
                   'outcome', CASE WHEN ?8 = 'resume' AND e.begun > 0 THEN NULL ELSE ?11 END, 'effects', e.begun,
                   'input', json(e.input), 'note', json(?12)), ?13, ?14, ?15, {now}
  FROM holdfast_entity AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
   AND e.operation = ?6 AND e.epoch = ?7 AND e.phase = 'uncertain'
   AND NOT EXISTS (SELECT 1 FROM holdfast_effect AS x WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?6 AND x.state = 'begun')
-- then
UPDATE holdfast_entity AS e
   SET phase = CASE WHEN ?8 = 'resume' AND e.begun > 0 THEN 'due' ELSE 'free' END,
       status = CASE WHEN ?8 = 'success' THEN ?9 WHEN ?8 = 'back' OR e.begun = 0 THEN coalesce(?9, e.revert) ELSE e.status END,
       outcome = CASE WHEN ?8 = 'resume' AND e.begun > 0 THEN NULL ELSE ?11 END,
       failures = 0, deaths = 0, due_at = {now}, version = e.version + 1, epoch = e.epoch + 1, updated_at = {now}
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
RETURNING coalesce(status, ''), coalesce(version, -1), coalesce(data, 'null'), coalesce(created_at, 0),
          coalesce(updated_at, 0), coalesce(phase, 'free'), coalesce(operation, ''), coalesce(step, ''),
          coalesce(requester, ''), coalesce(revert, ''), coalesce(input, ''), coalesce(holder, ''),
          coalesce(epoch, 0), coalesce(until, 0), coalesce(claimed_at, 0), coalesce(begun, 0), coalesce(failures, 0),
          coalesce(deaths, 0), coalesce(error, ''), coalesce(outcome, ''), coalesce(manual, 0)
-- else
SELECT coalesce(e.status, ''), coalesce(e.version, -1), coalesce(e.data, 'null'), coalesce(e.created_at, 0),
       coalesce(e.updated_at, 0), coalesce(e.phase, 'free'), coalesce(e.operation, ''), coalesce(e.step, ''),
       coalesce(e.requester, ''), coalesce(e.revert, ''), coalesce(e.input, ''), coalesce(e.holder, ''),
       coalesce(e.epoch, 0), coalesce(e.until, 0), coalesce(e.claimed_at, 0), coalesce(e.begun, 0),
       coalesce(e.failures, 0), coalesce(e.deaths, 0), coalesce(e.error, ''), coalesce(e.outcome, ''),
       coalesce(e.manual, 0)
  FROM (SELECT 1) LEFT JOIN holdfast_entity AS e
    ON e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
