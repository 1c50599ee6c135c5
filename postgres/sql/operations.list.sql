-- Operations that are not at their end, of a workspace, behind one of them.
-- $1 shard, $2 workspace, $3 phase ('' for any), $4 one operation ('' for all), $5 behind, $6 limit
SELECT e.lifecycle, e.id, coalesce(e.plan::text, ''), coalesce(e.status, ''), coalesce(e.version, -1), coalesce(e.data, 'null')::text, coalesce(e.created_at, 'epoch'),
       coalesce(e.updated_at, 'epoch'), coalesce(e.phase, 'free'), coalesce(e.operation, ''), coalesce(e.step, ''),
       coalesce(e.requester, ''), coalesce(e.revert, ''), coalesce(e.input::text, ''), coalesce(e.holder, ''),
       coalesce(e.epoch, 0), coalesce(e.until, 'epoch'), coalesce(e.claimed_at, 'epoch'), coalesce(e.begun, 0),
       coalesce(e.failures, 0), coalesce(e.deaths, 0), coalesce(e.error, ''), coalesce(e.outcome, ''),
       coalesce(e.manual, false)
  FROM {schema}.entity e
 WHERE e.shard + 0 = $1::smallint AND e.workspace = $2::text AND e.phase <> 'free'
   AND ($3::text = '' OR e.phase = $3) AND ($4::text = '' OR e.operation = $4) AND e.operation > $5::text
 ORDER BY e.operation
 LIMIT $6::bigint
