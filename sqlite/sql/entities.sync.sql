-- Notes beside a row in a table of the user's own the status that it has, unless
-- somebody has it in a claim, and answers what is noted there now.
-- ?1 shard, ?2 workspace, ?3 command, ?4 lifecycle, ?5 entity, ?6 status
-- do
INSERT INTO holdfast_entity AS e (shard, workspace, lifecycle, id, status, version, data, side, created_at, updated_at)
SELECT ?1, ?2, ?4, ?5, ?6, 0, '{}', 1, t.now, t.now
  FROM (SELECT {now} AS now) AS t
 WHERE true
ON CONFLICT (shard, workspace, lifecycle, id) DO UPDATE
   SET status = CASE WHEN e.phase = 'free' THEN excluded.status ELSE e.status END,
       version = e.version + (e.phase = 'free' AND e.status <> excluded.status),
       updated_at = CASE WHEN e.phase = 'free' AND e.status <> excluded.status THEN excluded.updated_at ELSE e.updated_at END
RETURNING coalesce(status, ''), coalesce(version, -1), coalesce(data, 'null'), coalesce(created_at, 0),
          coalesce(updated_at, 0), coalesce(phase, 'free'), coalesce(operation, ''), coalesce(step, ''),
          coalesce(requester, ''), coalesce(revert, ''), coalesce(input, ''), coalesce(holder, ''),
          coalesce(epoch, 0), coalesce(until, 0), coalesce(claimed_at, 0), coalesce(begun, 0), coalesce(failures, 0),
          coalesce(deaths, 0), coalesce(error, ''), coalesce(outcome, ''), coalesce(manual, 0)
-- also
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$entity/' || ?4 || '/' || ?5, e.version, 'seen', json_object('to', e.status), NULL, NULL, NULL, e.updated_at
  FROM holdfast_entity AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
   AND NOT EXISTS (SELECT 1 FROM holdfast_history AS h
                    WHERE h.shard = ?1 AND h.workspace = ?2 AND h.stream = '$entity/' || ?4 || '/' || ?5 AND h.version = e.version)
