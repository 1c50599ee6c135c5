-- The columns that an entity's scanner reads, in a RETURNING.
coalesce(status, ''), coalesce(version, -1), coalesce(data, 'null'), coalesce(created_at, 0), coalesce(updated_at, 0), coalesce(phase, 'free'),
coalesce(operation, ''), coalesce(step, ''), coalesce(requester, ''), coalesce(revert, ''), coalesce(input, ''), coalesce(holder, ''),
coalesce(epoch, 0), coalesce(until, 0), coalesce(claimed_at, 0), coalesce(begun, 0), coalesce(failures, 0), coalesce(deaths, 0),
coalesce(error, ''), coalesce(outcome, ''), coalesce(manual, 0)
