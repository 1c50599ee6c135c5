-- Takes an entity that nobody has into a claim: the status that it is in says into
-- which. Taking adds one to the epoch, and begins an operation. An expired lease that is in the way is told by the phase.
-- ?1 shard, ?2 workspace, ?3 command, ?4 lifecycle, ?5 entity, ?6 claims by status, a JSON object of [into, revert, plan], ?7 want, ?8 operation, ?9 step,
-- ?10 requester, ?11 input, ?12 holder, ?13 lease in ms, ?14 whether nobody resumes it, ?15 effects begun with it,
-- ?16 correlation, ?17 causation, ?18 actor
-- do
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$entity/' || ?4 || '/' || ?5, e.version + 1,
       'claimed',
       json_object('from', e.status, 'to', (SELECT c.value ->> 0 FROM json_each(?6) AS c WHERE c.key = e.status), 'step', ?9, 'requester', ?10,
                   'operation', ?8, 'epoch', e.epoch + 1, 'holder', ?12), ?16, ?17, ?18, {now}
  FROM holdfast_entity AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
   AND e.phase = 'free' AND EXISTS (SELECT 1 FROM json_each(?6) AS c WHERE c.key = e.status) AND (?7 IS NULL OR e.version = ?7)
-- then
UPDATE holdfast_entity AS e
   SET status = (SELECT c.value ->> 0 FROM json_each(?6) AS c WHERE c.key = e.status),
       revert = (SELECT c.value ->> 1 FROM json_each(?6) AS c WHERE c.key = e.status),
       plan = (SELECT c.value -> 2 FROM json_each(?6) AS c WHERE c.key = e.status), version = e.version + 1,
       phase = 'held', operation = ?8, step = ?9, requester = ?10, input = ?11, manual = ?14, holder = ?12, epoch = e.epoch + 1,
       until = {now} + ?13, claimed_at = {now}, due_at = NULL, queue = NULL, stage = NULL, begun = ?15, failures = 0, deaths = 0, error = NULL, outcome = NULL,
       updated_at = {now}
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
RETURNING coalesce(status, ''), coalesce(version, -1), coalesce(data, 'null'), coalesce(created_at, 0),
          coalesce(updated_at, 0), coalesce(phase, 'free'), coalesce(operation, ''), coalesce(step, ''),
          coalesce(requester, ''), coalesce(revert, ''), coalesce(input, ''), coalesce(holder, ''),
          coalesce(epoch, 0), coalesce(until, 0), coalesce(claimed_at, 0), coalesce(begun, 0), coalesce(failures, 0),
          coalesce(deaths, 0), coalesce(error, ''), coalesce(outcome, ''), coalesce(manual, 0)
-- else
SELECT coalesce(e.status, ''), coalesce(e.version, -1), coalesce(e.data, 'null'), coalesce(e.created_at, 0),
       coalesce(e.updated_at, 0), CASE WHEN e.until <= {now} THEN 'expired' ELSE coalesce(e.phase, 'free') END, coalesce(e.operation, ''), coalesce(e.step, ''),
       coalesce(e.requester, ''), coalesce(e.revert, ''), coalesce(e.input, ''), coalesce(e.holder, ''),
       coalesce(e.epoch, 0), coalesce(e.until, 0), coalesce(e.claimed_at, 0), coalesce(e.begun, 0),
       coalesce(e.failures, 0), coalesce(e.deaths, 0), coalesce(e.error, ''), coalesce(e.outcome, ''),
       coalesce(e.manual, 0)
  FROM (SELECT 1) LEFT JOIN holdfast_entity AS e
    ON e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
