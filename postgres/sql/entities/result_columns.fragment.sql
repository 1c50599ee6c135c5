-- The columns that an entity's scanner reads, of {1}, which may be missing.
coalesce({1}.status, ''), coalesce({1}.version, -1), coalesce({1}.data, 'null')::text, coalesce({1}.created_at, 'epoch'),
coalesce({1}.updated_at, 'epoch'), coalesce({1}.phase, 'free'), coalesce({1}.operation, ''), coalesce({1}.step, ''), coalesce({1}.requester, ''),
coalesce({1}.revert, ''), coalesce({1}.input::text, ''), coalesce({1}.holder, ''), coalesce({1}.epoch, 0), coalesce({1}.until, 'epoch'),
coalesce({1}.claimed_at, 'epoch'), coalesce({1}.begun, 0), coalesce({1}.failures, 0), coalesce({1}.deaths, 0), coalesce({1}.error, ''),
coalesce({1}.outcome, ''), coalesce({1}.manual, false)
