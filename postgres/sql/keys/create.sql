-- Creates API keys, each with its first event. An existing id is refused.
-- :requesters a JSON list; :lifetime in ms (NULL without end); :predecessor the key that it succeeds (NULL none); :handlers a JSON list; :restrictions a JSON object
WITH {members}, {include store/time}, made AS (
    INSERT INTO {schema}.api_key
        (id, workspace, name, role, requesters, handlers, restrictions, hash, rate, version, created_by, created_at, expires_at, origin)
    SELECT m.id, m.workspace, m.name, m.role, m.requesters::json, m.handlers::json, m.restrictions::json, m.hash, m.rate, 0, m.actor, t.now, t.now + m.lifetime::float8 * interval '1 ms',
           (SELECT coalesce(p.origin, p.id) FROM {schema}.api_key p WHERE p.workspace = m.workspace AND p.id = m.predecessor)
      FROM m, t
     ORDER BY m.id
    ON CONFLICT (id) DO NOTHING
    RETURNING id, name, role, requesters, handlers, restrictions, rate, version, created_by, created_at, expires_at
), {include history/write}
    SELECT m.shard, m.command, 0, m.workspace, '$key/' || m.id, made.version, 'created',
           pg_catalog.json_build_object('name', made.name, 'role', made.role, 'requesters', made.requesters, 'handlers', made.handlers, 'restrictions', made.restrictions,
                             'expiresAt', pg_catalog.to_char(made.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'predecessor', m.predecessor),
           NULL, NULL, m.actor, made.created_at
      FROM m JOIN made ON made.id = m.id
    {due_notices}
SELECT m.member, CASE WHEN made.id IS NULL THEN 0 ELSE 1 END,
       coalesce(made.id, ''), coalesce(made.name, ''), coalesce(made.role, ''), coalesce(made.requesters::text, '[]'), coalesce(made.handlers::text, '[]'), coalesce(made.restrictions::text, '{}'), coalesce(made.rate, 0),
       ''::text, coalesce(made.created_by, ''), coalesce(made.created_at, 'epoch'), coalesce(made.expires_at, 'epoch'), 'epoch'::timestamptz, 'epoch'::timestamptz
  FROM m LEFT JOIN made ON made.id = m.id
