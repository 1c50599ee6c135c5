-- Notes beside a row in a table of the user's own the status that it has, unless
-- somebody has it in a claim, and answers what is noted there now.
-- ?1 shard, ?2 workspace, ?3 command, ?4 lifecycle, ?5 entity, ?6 status
-- do
INSERT INTO holdfast_entity AS e (shard, workspace, lifecycle, id, status, version, data, side, created_at, updated_at)
SELECT ?1, ?2, ?4, ?5, ?6, 0, '{}', 1, t.now, t.now
  FROM (SELECT {now} AS now) AS t
 WHERE true
ON CONFLICT (shard, workspace, lifecycle, id) DO UPDATE
   SET status = excluded.status, version = e.version + 1, updated_at = excluded.updated_at
 WHERE e.phase = 'free' AND e.status <> excluded.status
RETURNING coalesce(status, ''), coalesce(version, -1), coalesce(data, 'null'), coalesce(created_at, 0),
          coalesce(updated_at, 0), coalesce(phase, 'free'), coalesce(operation, ''), coalesce(step, ''),
          coalesce(requester, ''), coalesce(revert, ''), coalesce(input, ''), coalesce(holder, ''),
          coalesce(epoch, 0), coalesce(until, 0), coalesce(claimed_at, 0), coalesce(begun, 0), coalesce(failures, 0),
          coalesce(deaths, 0), coalesce(error, ''), coalesce(outcome, ''), coalesce(manual, 0)
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$entity/' || ?4 || '/' || ?5, e.version, 'seen', json_object('to', e.status), NULL, NULL, NULL, e.updated_at
  FROM holdfast_entity AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
-- else
SELECT coalesce(e.status, ''), coalesce(e.version, -1), coalesce(e.data, 'null'), coalesce(e.created_at, 0),
       coalesce(e.updated_at, 0), coalesce(e.phase, 'free'), coalesce(e.operation, ''), coalesce(e.step, ''),
       coalesce(e.requester, ''), coalesce(e.revert, ''), coalesce(e.input, ''), coalesce(e.holder, ''),
       coalesce(e.epoch, 0), coalesce(e.until, 0), coalesce(e.claimed_at, 0), coalesce(e.begun, 0),
       coalesce(e.failures, 0), coalesce(e.deaths, 0), coalesce(e.error, ''), coalesce(e.outcome, ''),
       coalesce(e.manual, 0)
  FROM holdfast_entity AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
