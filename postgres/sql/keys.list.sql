-- The API keys of a workspace, by their ids.
-- $1 shard, not looked at, $2 workspace, $3 after, $4 limit
SELECT k.id, k.name, k.role, k.requesters::text, k.handlers::text, k.rate, coalesce(k.successor, ''), k.created_by, k.created_at,
       coalesce(k.expires_at, 'epoch'), coalesce(k.revoked_at, 'epoch')
  FROM {schema}.api_key k
 WHERE k.workspace = $2::text AND k.id > $3::text AND $1::smallint IS NOT NULL
 ORDER BY k.id
 LIMIT $4::bigint
