-- Frees a hold that has run out, and looks at what was begun under it first: where
-- no effect was begun that may have happened, the entity goes back; otherwise it
-- stays in the claim, to be resumed or, where nobody resumes it or too many have
-- died of it, until a person says what happened.
-- ?1 shard, ?2 workspace, ?3 command, ?4 lifecycle, ?5 entity, ?6 epoch, ?7 whether there is somebody to resume it, ?8 deaths allowed, ?9 note,
-- ?10 claim status
-- do
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$entity/' || ?4 || '/' || ?5, e.version + 1,
       CASE WHEN e.begun = 0 THEN 'recovered' WHEN e.manual OR ?7 = 0 OR e.deaths + 1 >= ?8 THEN 'parked' ELSE 'interrupted' END,
       json_object('from', e.status, 'to', CASE WHEN e.begun = 0 AND e.status = ?10 THEN e.revert ELSE e.status END, 'step', e.step, 'requester', e.requester,
                   'operation', e.operation, 'epoch', e.epoch, 'effects', e.begun, 'deaths', e.deaths + 1,
                   'message', 'the holder ' || e.holder || ' did not come back', 'note', json(?9)), NULL, NULL, NULL, {now}
  FROM holdfast_entity AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
   AND e.epoch = ?6 AND e.phase = 'held' AND e.until <= {now}
-- then
UPDATE holdfast_entity AS e
   SET phase = CASE WHEN e.begun = 0 THEN 'free' WHEN e.manual OR ?7 = 0 OR e.deaths + 1 >= ?8 THEN 'uncertain' ELSE 'due' END,
       status = CASE WHEN e.begun = 0 AND e.status = ?10 THEN e.revert ELSE e.status END, outcome = CASE WHEN e.begun = 0 THEN 'recovered' END,
       error = 'the holder ' || e.holder || ' did not come back', deaths = e.deaths + 1, version = e.version + 1,
       holder = NULL, until = NULL, due_at = {now}, updated_at = {now}
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
