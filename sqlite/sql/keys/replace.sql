-- Sets an API key to expire after an overlap, because another key succeeds it, and writes
-- the event. A key is replaced once, and only while it is valid.
-- do
UPDATE holdfast_api_key AS k
   SET successor = :successor, expires_at = min(coalesce(k.expires_at, t.now + :overlap), t.now + :overlap), version = k.version + 1
  FROM (SELECT {now} AS now) AS t
 WHERE k.workspace = :workspace AND k.id = :id
   AND k.revoked_at IS NULL AND k.successor IS NULL AND (k.expires_at IS NULL OR k.expires_at > t.now)
RETURNING id, name, role, requesters, handlers, restrictions, rate, coalesce(successor, ''), created_by, created_at, coalesce(expires_at, 0), coalesce(revoked_at, 0), coalesce(last_used_at, 0)
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$key/' || :id, k.version, 'rotated',
       json_object('name', k.name, 'role', k.role, 'requesters', json(k.requesters), 'handlers', json(k.handlers), 'restrictions', json(k.restrictions),
                   'expiresAt', strftime('%Y-%m-%dT%H:%M:%fZ', k.expires_at / 1000.0, 'unixepoch'), 'successor', k.successor),
       NULL, NULL, :actor, {now}
  FROM holdfast_api_key AS k
 WHERE k.workspace = :workspace AND k.id = :id
-- else
SELECT coalesce(k.id, ''), coalesce(k.name, ''), coalesce(k.role, ''), coalesce(k.requesters, '[]'), coalesce(k.handlers, '[]'), coalesce(k.restrictions, '{}'), coalesce(k.rate, 0),
       coalesce(k.successor, ''), coalesce(k.created_by, ''), coalesce(k.created_at, 0), coalesce(k.expires_at, 0), coalesce(k.revoked_at, 0), coalesce(k.last_used_at, 0)
  FROM (SELECT 1) LEFT JOIN holdfast_api_key AS k ON k.workspace = :workspace AND k.id = :id
