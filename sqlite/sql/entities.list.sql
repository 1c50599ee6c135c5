-- Entities of a lifecycle, in the order of their ids, behind one of them.
-- ?1 shard, ?2 workspace, ?3 lifecycle, ?4 status ('' for any), ?5 behind, ?6 limit
-- do
SELECT e.lifecycle, e.id, coalesce(e.plan, ''), coalesce(e.status, ''), coalesce(e.version, -1), coalesce(e.data, 'null'), coalesce(e.created_at, 0),
       coalesce(e.updated_at, 0), coalesce(e.phase, 'free'), coalesce(e.operation, ''), coalesce(e.step, ''),
       coalesce(e.requester, ''), coalesce(e.revert, ''), coalesce(e.input, ''), coalesce(e.holder, ''),
       coalesce(e.epoch, 0), coalesce(e.until, 0), coalesce(e.claimed_at, 0), coalesce(e.begun, 0),
       coalesce(e.failures, 0), coalesce(e.deaths, 0), coalesce(e.error, ''), coalesce(e.outcome, ''),
       coalesce(e.manual, 0)
  FROM holdfast_entity AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?3 AND e.id > ?5
   AND (?4 = '' OR e.status = ?4) AND e.side = 0
 ORDER BY e.id
 LIMIT +?6
