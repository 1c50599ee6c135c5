-- The columns that an entity's scanner reads; the entity may be missing; {1} is its phase.
coalesce(e.status, ''), coalesce(e.version, -1), coalesce(e.data, 'null'), coalesce(e.created_at, 0), coalesce(e.updated_at, 0), {1},
coalesce(e.operation, ''), coalesce(e.step, ''), coalesce(e.requester, ''), coalesce(e.revert, ''), coalesce(e.input, ''), coalesce(e.holder, ''),
coalesce(e.epoch, 0), coalesce(e.until, 0), coalesce(e.claimed_at, 0), coalesce(e.begun, 0), coalesce(e.failures, 0), coalesce(e.deaths, 0),
coalesce(e.error, ''), coalesce(e.outcome, ''), coalesce(e.manual, 0)
