-- Returns an API key with its hash and its workspace, whether it is valid now, the ms until it expires (-1 without
-- an end), and the first key that it was rotated from, if any. The caller does not know the workspace.
SELECT k.id, k.name, k.role, k.requesters, k.handlers, k.restrictions, k.rate, coalesce(k.successor, ''), k.created_by, k.created_at,
       coalesce(k.expires_at, 0), coalesce(k.revoked_at, 0), coalesce(k.last_used_at, 0),
       k.workspace, k.hash, k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > t.now),
       coalesce(max(k.expires_at - t.now, 0), -1), coalesce(k.origin, '')
  FROM holdfast_api_key AS k, (SELECT {now} AS now) AS t
 WHERE k.id = :id
