-- Returns an API key with its hash and its workspace, whether it is valid now, the ms until it expires (-1 without
-- an end), and the first key that it was rotated from, if any. The caller does not know the workspace.
SELECT k.id, k.name, k.role, k.requesters::text, k.handlers::text, k.restrictions::text, k.rate, coalesce(k.successor, ''), k.created_by, k.created_at,
       coalesce(k.expires_at, 'epoch'), coalesce(k.revoked_at, 'epoch'), coalesce(k.last_used_at, 'epoch'),
       k.workspace, k.hash, k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > t.now),
       CASE WHEN k.expires_at IS NULL THEN -1 ELSE greatest(pg_catalog.floor(extract(epoch FROM k.expires_at - t.now) * 1000::numeric), 0) END::bigint,
       coalesce(k.origin, '')
  FROM {schema}.api_key k, (SELECT {now} AS now) AS t
 WHERE k.id = :id AND :shard IS NOT NULL AND :workspace IS NOT NULL
