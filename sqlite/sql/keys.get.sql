-- One API key.
-- ?1 shard, not looked at, ?2 workspace, ?3 id
-- do
SELECT k.id, k.name, k.role, k.requesters, k.handlers, k.rate, coalesce(k.successor, ''), k.created_by, k.created_at,
       coalesce(k.expires_at, 0), coalesce(k.revoked_at, 0)
  FROM holdfast_api_key AS k
 WHERE k.workspace = ?2 AND k.id = ?3
