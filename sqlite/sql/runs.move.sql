-- Moves a run by a plan, if it has the version that the plan was made at, and if its step
-- is as the plan wants it: held, under an epoch, by a hold that has not run out; held by
-- one that has ('died'); due, and nobody's; or whatever it is (''). A plan that was made by
-- what was begun, is open or was fired (saw) is refused, with the version -1, where that has
-- changed: none of it changes the run's version.
-- ?1 shard, ?2 workspace, ?3 command, ?4 run, ?5 version, ?6 how the step is to be, ?7 step, ?8 visit, ?9 epoch, ?10 holder, ?11 lease in ms, ?12 plan
-- do
UPDATE holdfast_run AS r
   SET version = r.version + json_array_length(?12, '$.events'), status = ?12 ->> '$.run.status', step = ?12 ->> '$.run.step', visit = ?12 ->> '$.run.visit',
       state = coalesce(?12 -> '$.run.state', r.state), memo = coalesce(?12 -> '$.run.memo', r.memo), output = coalesce(?12 -> '$.run.output', r.output),
       error = ?12 ->> '$.run.error', cancel_requested = ?12 ->> '$.run.cancel',
       started_at = coalesce(r.started_at, CASE WHEN ?12 ->> '$.run.status' NOT IN ('PENDING', 'CANCELLED') THEN {now} END),
       finished_at = CASE WHEN ?12 ->> '$.run.over' THEN {now} END, prune_at = CASE WHEN ?12 ->> '$.run.over' THEN {now} + (?12 ->> '$.run.keep') END, updated_at = {now}
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4 AND r.version = ?5
   AND EXISTS (SELECT 1 FROM holdfast_step AS s
                WHERE s.shard = ?1 AND s.workspace = ?2 AND s.run = ?4 AND s.name = ?7 AND s.visit = ?8 AND s.epoch = ?9
                  AND coalesce(s.begun = ?12 ->> '$.saw.begun', 1) AND coalesce(coalesce(s.fired, '') = ?12 ->> '$.saw.fired', 1)
                  AND (?12 ->> '$.saw.open' IS NULL OR ?12 ->> '$.saw.open' = (
                       SELECT count(*) FROM holdfast_effect AS x
                        WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?4 || '/' || ?7 || '/' || ?8 AND x.state = 'begun'))
                  AND CASE ?6 WHEN 'held' THEN s.until > {now} WHEN 'died' THEN s.until <= {now} WHEN 'due' THEN s.due_at <= {now} ELSE 1 END)
RETURNING version
-- also
UPDATE holdfast_step AS s
   SET begun = s.begun - (SELECT count(*) FROM holdfast_effect AS x JOIN json_each(?12, '$.results') AS e
                           WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?4 || '/' || ?7 || '/' || ?8
                             AND x.name = e.value ->> 'n' AND x.ordinal = e.value ->> 'o' AND x.state = 'begun' AND e.value ->> 's' = 'notDone')
                       + (coalesce(?12 ->> '$.body.operation' = ?4 || '/' || ?7 || '/' || ?8, 0) AND NOT EXISTS (
                          SELECT 1 FROM holdfast_effect AS x
                           WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?12 ->> '$.body.operation' AND x.name = '$body' AND x.ordinal = 0 AND x.state <> 'notDone'))
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.run = ?4 AND s.name = ?7 AND s.visit = ?8
   AND (json_array_length(?12, '$.results') > 0 OR ?12 ->> '$.body.operation' = ?4 || '/' || ?7 || '/' || ?8)
-- also
UPDATE holdfast_effect AS x
   SET state = (SELECT e.value ->> 's' FROM json_each(?12, '$.results') AS e WHERE e.value ->> 'n' = x.name AND e.value ->> 'o' = x.ordinal),
       result = (SELECT e.value -> 'r' FROM json_each(?12, '$.results') AS e WHERE e.value ->> 'n' = x.name AND e.value ->> 'o' = x.ordinal), ended_at = {now}
 WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?4 || '/' || ?7 || '/' || ?8 AND x.state = 'begun'
   AND EXISTS (SELECT 1 FROM json_each(?12, '$.results') AS e WHERE e.value ->> 'n' = x.name AND e.value ->> 'o' = x.ordinal)
-- also
UPDATE holdfast_step AS s
   SET status = x.v ->> 'status', output = coalesce(x.v -> 'output', s.output), error = x.v ->> 'error', next = x.v ->> 'next',
       attempts = x.v ->> 'attempts', failures = x.v ->> 'failures', deaths = x.v ->> 'deaths', quiet = x.v ->> 'quiet', lost = x.v ->> 'lost',
       safety = coalesce(x.v ->> 'safety', s.safety), unknown = coalesce(x.v ->> 'unknown', s.unknown), timeout = coalesce(x.v ->> 'timeout', s.timeout),
       holder = CASE x.v ->> 'hold' WHEN 'take' THEN ?10 WHEN 'keep' THEN s.holder END,
       epoch = s.epoch + (x.v ->> 'hold' = 'take'),
       until = CASE x.v ->> 'hold' WHEN 'take' THEN r.updated_at + min(?11, coalesce(x.v ->> 'timeout', s.timeout)) WHEN 'keep' THEN s.until END,
       taken_at = CASE x.v ->> 'hold' WHEN 'take' THEN r.updated_at ELSE s.taken_at END,
       due_at = CASE x.v ->> 'when' WHEN 'in' THEN r.updated_at + (x.v ->> 'ms') WHEN 'keep' THEN s.due_at WHEN 'deadline' THEN s.deadline
                                    WHEN 'unpark' THEN coalesce(s.later, r.updated_at) END,
       later = CASE x.v ->> 'when' WHEN 'park' THEN s.due_at WHEN 'parkin' THEN r.updated_at + (x.v ->> 'ms') END,
       uncertain = x.v ->> 'uncertain', fired = CASE WHEN x.v ->> 'clear' THEN NULL ELSE s.fired END,
       started_at = coalesce(s.started_at, CASE WHEN x.v ->> 'status' IN ('RUNNING', 'WAITING') THEN r.updated_at END),
       finished_at = CASE WHEN x.v ->> 'over' THEN r.updated_at END
  FROM (SELECT ?12 -> '$.touch' AS v) AS x, holdfast_run AS r
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.run = ?4 AND s.name = ?7 AND s.visit = ?8 AND x.v IS NOT NULL
   AND r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4
-- also
INSERT INTO holdfast_step
    (shard, workspace, run, name, visit, n, type, handler, status, input, output, error, next, attempts, failures, holder, epoch, until, deaths,
     timeout, taken_at, due_at, deadline, begun, uncertain, safety, unknown, signal, created_at, started_at, finished_at)
SELECT ?1, ?2, ?4, x.value ->> 'name', x.value ->> 'visit', x.value ->> 'n', x.value ->> 'type', x.value ->> 'handler', x.value ->> 'status',
       x.value -> 'input', x.value -> 'output', x.value ->> 'error', x.value ->> 'next', x.value ->> 'attempts', 0,
       CASE WHEN x.value ->> 'held' THEN ?10 END, x.value ->> 'held',
       CASE WHEN x.value ->> 'held' THEN r.updated_at + min(?11, x.value ->> 'timeout') END, 0,
       x.value ->> 'timeout', CASE WHEN x.value ->> 'held' THEN r.updated_at END,
       CASE WHEN EXISTS (SELECT 1 FROM holdfast_signal AS g
                          WHERE g.shard = ?1 AND g.workspace = ?2 AND g.run = ?4 AND g.type = x.value ->> 'signal' AND g.taken IS NULL
                            AND g.id <> coalesce(?12 ->> '$.signal', '')) THEN r.updated_at
            ELSE coalesce(x.value ->> 'at', r.updated_at + (x.value ->> 'due')) END,
       r.updated_at + (x.value ->> 'wait'), x.value ->> 'begun', 0, x.value ->> 'safety', x.value ->> 'unknown', x.value ->> 'signal', r.updated_at,
       CASE WHEN x.value ->> 'status' <> 'PENDING' THEN r.updated_at END, CASE WHEN x.value ->> 'over' THEN r.updated_at END
  FROM holdfast_run AS r JOIN json_each(?12, '$.add') AS x
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4
-- also
INSERT INTO holdfast_effect AS x (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at)
SELECT ?1, ?2, ?12 ->> '$.body.operation', '$body', 0, ?12 ->> '$.body.epoch', 'begun', ?12 ->> '$.body.policy', {now}
 WHERE ?12 ->> '$.body.operation' IS NOT NULL
ON CONFLICT (shard, workspace, operation, name, ordinal) DO UPDATE
   SET state = 'begun', epoch = excluded.epoch, policy = excluded.policy, begun_at = excluded.begun_at, result = NULL, ended_at = NULL
 WHERE x.state = 'notDone'
-- also
INSERT INTO holdfast_approval (shard, workspace, run, step, visit, prompt, requesters, status, expires_at, created_at)
SELECT ?1, ?2, ?4, ?12 ->> '$.ask.step', ?12 ->> '$.ask.visit', ?12 ->> '$.ask.prompt', ?12 -> '$.ask.requesters', 'pending',
       r.updated_at + (?12 ->> '$.ask.within'), r.updated_at
  FROM holdfast_run AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4 AND ?12 ->> '$.ask.step' IS NOT NULL
-- also
UPDATE holdfast_approval AS a
   SET status = 'expired', decided_at = {now}
 WHERE a.shard = ?1 AND a.workspace = ?2 AND a.run = ?4 AND a.step = ?7 AND a.visit = ?8 AND ?12 ->> '$.lapse' AND a.status = 'pending'
-- also
UPDATE holdfast_signal AS g
   SET taken = ?7 || '/' || ?8
 WHERE g.shard = ?1 AND g.workspace = ?2 AND g.run = ?4 AND g.id = ?12 ->> '$.signal'
-- also
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, e.key, ?2, '$run/' || ?4, r.version - json_array_length(?12, '$.events') + e.key + 1, e.value ->> 'name', e.value -> 'data', NULL, NULL, NULL, r.updated_at
  FROM holdfast_run AS r JOIN json_each(?12, '$.events') AS e
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4
-- then
SELECT r.version, coalesce((SELECT s.until FROM holdfast_step AS s WHERE s.shard = ?1 AND s.workspace = ?2 AND s.run = ?4 AND s.name = r.step AND s.visit = r.visit), 0), r.updated_at
  FROM holdfast_run AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4
-- else
SELECT CASE WHEN EXISTS (SELECT 1 FROM holdfast_step AS s
                          WHERE s.shard = ?1 AND s.workspace = ?2 AND s.run = ?4 AND s.name = ?7 AND s.visit = ?8
                            AND (s.begun <> ?12 ->> '$.saw.begun' OR coalesce(s.fired, '') <> ?12 ->> '$.saw.fired'
                                 OR ?12 ->> '$.saw.open' <> (
                                    SELECT count(*) FROM holdfast_effect AS x
                                     WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?4 || '/' || ?7 || '/' || ?8 AND x.state = 'begun'))) THEN -1
            ELSE coalesce(r.version, -1) END, 0, {now}
  FROM (SELECT 1) LEFT JOIN holdfast_run AS r ON r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4
