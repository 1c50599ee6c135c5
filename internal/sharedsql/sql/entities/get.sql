-- Returns an entity, with its holder. The phase shows whether the lease has expired.
SELECT coalesce(e.plan{text}, ''), coalesce(e.status, ''), coalesce(e.version, -1), coalesce(e.data, 'null'){text}, coalesce(e.created_at, {no_time}),
       coalesce(e.updated_at, {no_time}), CASE WHEN e.until <= {now} THEN 'expired' ELSE coalesce(e.phase, 'free') END, coalesce(e.operation, ''), coalesce(e.step, ''),
       coalesce(e.requester, ''), coalesce(e.revert, ''), coalesce(e.input{text}, ''), coalesce(e.holder, ''),
       coalesce(e.epoch, 0), coalesce(e.until, {no_time}), coalesce(e.claimed_at, {no_time}), coalesce(e.begun, 0),
       coalesce(e.failures, 0), coalesce(e.deaths, 0), coalesce(e.error, ''), coalesce(e.outcome, ''),
       coalesce(e.manual, false)
  FROM {schema}.entity AS e
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
