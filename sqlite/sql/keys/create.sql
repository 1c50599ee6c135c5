-- Creates an API key, with its first event. An existing id is refused.
-- do
INSERT INTO holdfast_api_key
    (id, workspace, name, role, requesters, handlers, restrictions, hash, rate, version, created_by, created_at, expires_at, origin)
SELECT :id, :workspace, :name, :role, :requesters, :handlers, :restrictions, :hash, :rate, 0, :actor, t.now, t.now + :lifetime,
       (SELECT coalesce(p.origin, p.id) FROM holdfast_api_key AS p WHERE p.workspace = :workspace AND p.id = :predecessor)
  FROM (SELECT {now} AS now) AS t
 WHERE true
ON CONFLICT (id) DO NOTHING
RETURNING id, name, role, requesters, handlers, restrictions, rate, coalesce(successor, ''), created_by, created_at, coalesce(expires_at, 0), coalesce(revoked_at, 0), coalesce(last_used_at, 0)
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$key/' || :id, k.version, 'created',
       json_object('name', k.name, 'role', k.role, 'requesters', json(k.requesters), 'handlers', json(k.handlers), 'restrictions', json(k.restrictions),
                   'expiresAt', strftime('%Y-%m-%dT%H:%M:%fZ', k.expires_at / 1000.0, 'unixepoch'), 'predecessor', :predecessor),
       NULL, NULL, :actor, k.created_at
  FROM holdfast_api_key AS k
 WHERE k.workspace = :workspace AND k.id = :id
-- else
SELECT '', '', '', '[]', '[]', '{}', 0, '', '', 0, 0, 0, 0
