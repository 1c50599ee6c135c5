-- Ends a hold that has not run out, and looks at what was begun under it first. A
-- success ends the operation, if all that was begun is known. So does giving back,
-- where no effect was begun that may have happened: then the entity goes where it is
-- told, or back. Otherwise it stays in the claim, to be resumed later or, past the
-- retries, or if nobody resumes it, or if that is what is asked for, until a person
-- says what happened. Being told to stop is no failure. A status that somebody has
-- changed under the claim is left alone.
-- ?1 shard, ?2 workspace, ?3 command, ?4 lifecycle, ?5 entity, ?6 operation, ?7 epoch, ?8 how: success, back or park, ?9 to (NULL: back), ?10 data,
-- ?11 results of effects, a JSON list of {n: name, o: ordinal, r: result}, ?12 delay in ms, ?13 retries, ?14 event,
-- ?15 message, ?16 outcome, ?17 note, ?18 claim status, ?19 correlation, ?20 causation, ?21 actor
-- do
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$entity/' || ?4 || '/' || ?5, e.version + 1,
       CASE e.becomes WHEN 'free' THEN ?14 WHEN 'due' THEN 'interrupted' ELSE 'parked' END,
       json_object('from', e.status, 'to', CASE WHEN e.becomes = 'free' AND e.status = ?18 THEN coalesce(?9, e.revert) ELSE e.status END, 'step', e.step,
                   'requester', e.requester, 'operation', e.operation, 'epoch', e.epoch,
                   'outcome', CASE WHEN e.becomes = 'free' THEN ?16 END, 'effects', e.begun, 'message', ?15,
                   'input', json(e.input), 'note', json(?17)), ?19, ?20, ?21, {now}
  FROM (SELECT e.*,
               CASE WHEN ?8 = 'success' THEN CASE WHEN (e.begun = 0 OR e.begun <= (SELECT count(*) FROM holdfast_effect AS x
                    WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?6
                      AND (x.state = 'done' OR (x.state = 'begun' AND EXISTS (SELECT 1 FROM json_each(?11) AS r
                                                                              WHERE r.value ->> 'n' = x.name AND r.value ->> 'o' = x.ordinal))))) THEN 'free' ELSE 'uncertain' END
                    WHEN e.begun = 0 THEN 'free'
                    WHEN ?8 = 'park' OR e.manual OR (e.failures + 1 > ?13 AND ?16 <> 'cancelled') THEN 'uncertain'
                    ELSE 'due' END AS becomes
          FROM holdfast_entity AS e
         WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5) AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
   AND e.operation = ?6 AND e.epoch = ?7 AND e.phase = 'held' AND e.until > {now} AND (?8 <> 'success' OR e.status = ?18)
-- also
UPDATE holdfast_effect AS x
   SET state = 'done', ended_at = {now},
       result = (SELECT r.value -> 'r' FROM json_each(?11) AS r WHERE r.value ->> 'n' = x.name AND r.value ->> 'o' = x.ordinal)
 WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?6 AND x.state = 'begun'
   AND EXISTS (SELECT 1 FROM json_each(?11) AS r WHERE r.value ->> 'n' = x.name AND r.value ->> 'o' = x.ordinal)
-- then
UPDATE holdfast_entity AS e
   SET phase = t.becomes, status = CASE WHEN t.becomes = 'free' AND e.status = ?18 THEN coalesce(?9, e.revert) ELSE e.status END,
       outcome = CASE WHEN t.becomes = 'free' THEN ?16 END, data = CASE WHEN t.becomes = 'free' THEN coalesce(?10, e.data) ELSE e.data END,
       version = e.version + 1, holder = NULL, until = NULL, quiet = 0, lost = 0, due_at = {now} + ?12, error = ?15,
       failures = e.failures + (?8 <> 'success' AND ?16 <> 'cancelled'), updated_at = {now}
  FROM (SELECT CASE h.name WHEN 'interrupted' THEN 'due' WHEN 'parked' THEN 'uncertain' ELSE 'free' END AS becomes
          FROM holdfast_history AS h WHERE h.shard = ?1 AND h.workspace = ?2 AND h.id = ?3) AS t
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
