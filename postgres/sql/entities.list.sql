-- Entities of a lifecycle, in the order of their ids, behind one of them.
-- $1 shard, $2 workspace, $3 lifecycle, $4 status ('' for any), $5 behind, $6 limit
SELECT e.lifecycle, e.id, coalesce(e.plan::text, ''), coalesce(e.status, ''), coalesce(e.version, -1), coalesce(e.data, 'null')::text, coalesce(e.created_at, 'epoch'),
       coalesce(e.updated_at, 'epoch'), coalesce(e.phase, 'free'), coalesce(e.operation, ''), coalesce(e.step, ''),
       coalesce(e.requester, ''), coalesce(e.revert, ''), coalesce(e.input::text, ''), coalesce(e.holder, ''),
       coalesce(e.epoch, 0), coalesce(e.until, 'epoch'), coalesce(e.claimed_at, 'epoch'), coalesce(e.begun, 0),
       coalesce(e.failures, 0), coalesce(e.deaths, 0), coalesce(e.error, ''), coalesce(e.outcome, ''),
       coalesce(e.manual, false)
  FROM {schema}.entity e
 WHERE e.shard = $1::smallint AND e.workspace = $2::text AND e.lifecycle = $3::text AND e.id > $5::text
   AND ($4::text = '' OR e.status = $4) AND NOT e.side
 ORDER BY e.id
 LIMIT $6::bigint
