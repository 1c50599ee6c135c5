-- Frees a hold that has run out, and looks at what was begun under it first: where
-- no effect was begun that may have happened, the entity goes back; otherwise it
-- stays in the claim, to be resumed or, where nobody resumes it or too many have
-- died of it, until a person says what happened. A hold that was quiet is a lost
-- hand-out, and no death: the operation is due again after a pause.
-- ?1 shard, ?2 workspace, ?3 command, ?4 lifecycle, ?5 entity, ?6 epoch, ?7 whether there is somebody to resume it, ?8 deaths allowed, ?9 note,
-- ?10 claim status, ?11 pause behind a lost hand-out in ms
-- do
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$entity/' || ?4 || '/' || ?5, e.version + 1,
       CASE WHEN e.begun = 0 AND NOT (e.quiet AND e.status = ?10) THEN 'recovered'
            WHEN e.begun > 0 AND (e.manual OR ?7 = 0 OR NOT e.quiet AND e.deaths + 1 >= ?8) THEN 'parked' WHEN e.quiet THEN 'lost' ELSE 'interrupted' END,
       json_object('from', e.status, 'to', CASE WHEN e.begun = 0 AND NOT e.quiet AND e.status = ?10 THEN e.revert ELSE e.status END, 'step', e.step, 'requester', e.requester,
                   'operation', e.operation, 'epoch', e.epoch, 'effects', e.begun, 'deaths', e.deaths + (NOT e.quiet), 'lost', CASE WHEN e.quiet THEN e.lost + 1 ELSE 0 END,
                   'message', CASE WHEN e.quiet THEN 'it was handed out to ' || e.holder || ', who was not heard of' ELSE 'the holder ' || e.holder || ' did not come back' END, 'note', json(?9)), NULL, NULL, NULL, {now}
  FROM holdfast_entity AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
   AND e.epoch = ?6 AND e.phase = 'held' AND e.until <= {now}
-- then
UPDATE holdfast_entity AS e
   SET phase = CASE t.fate WHEN 'recovered' THEN 'free' WHEN 'parked' THEN 'uncertain' ELSE 'due' END,
       status = CASE WHEN t.fate = 'recovered' AND e.status = ?10 THEN e.revert ELSE e.status END, outcome = CASE WHEN t.fate = 'recovered' THEN 'recovered' END,
       error = t.message, deaths = e.deaths + (NOT e.quiet), version = e.version + 1, quiet = 0, lost = CASE WHEN t.fate = 'lost' THEN e.lost + 1 ELSE 0 END,
       holder = NULL, until = NULL, due_at = {now} + CASE WHEN t.fate = 'lost' THEN ?11 ELSE 0 END, updated_at = {now}
  FROM (SELECT h.name AS fate, h.data ->> 'message' AS message FROM holdfast_history AS h WHERE h.shard = ?1 AND h.workspace = ?2 AND h.id = ?3) AS t
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
