-- The API keys of a workspace, by their ids.
-- ?1 shard, not looked at, ?2 workspace, ?3 after, ?4 limit
-- do
SELECT k.id, k.name, k.role, k.requesters, k.handlers, k.rate, coalesce(k.successor, ''), k.created_by, k.created_at,
       coalesce(k.expires_at, 0), coalesce(k.revoked_at, 0)
  FROM holdfast_api_key AS k
 WHERE k.workspace = ?2 AND k.id > ?3
 ORDER BY k.id
 LIMIT +?4
