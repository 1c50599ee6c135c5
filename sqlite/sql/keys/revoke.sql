-- Revokes an API key, with its event. A revoked key is not changed.
-- do
UPDATE holdfast_api_key AS k
   SET revoked_at = {now}, version = k.version + 1
 WHERE k.workspace = :workspace AND k.id = :id AND k.revoked_at IS NULL
RETURNING id, name, role, requesters, handlers, restrictions, rate, coalesce(successor, ''), created_by, created_at, coalesce(expires_at, 0), coalesce(revoked_at, 0), coalesce(last_used_at, 0)
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$key/' || :id, k.version, 'revoked',
       json_object('name', k.name, 'role', k.role, 'requesters', json(k.requesters), 'handlers', json(k.handlers), 'restrictions', json(k.restrictions),
                   'expiresAt', strftime('%Y-%m-%dT%H:%M:%fZ', k.expires_at / 1000.0, 'unixepoch')),
       NULL, NULL, :actor, k.revoked_at
  FROM holdfast_api_key AS k
 WHERE k.workspace = :workspace AND k.id = :id
-- else
SELECT coalesce(k.id, ''), coalesce(k.name, ''), coalesce(k.role, ''), coalesce(k.requesters, '[]'), coalesce(k.handlers, '[]'), coalesce(k.restrictions, '{}'), coalesce(k.rate, 0),
       coalesce(k.successor, ''), coalesce(k.created_by, ''), coalesce(k.created_at, 0), coalesce(k.expires_at, 0), coalesce(k.revoked_at, 0), coalesce(k.last_used_at, 0)
  FROM (SELECT 1) LEFT JOIN holdfast_api_key AS k ON k.workspace = :workspace AND k.id = :id
