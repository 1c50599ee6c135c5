-- Returns a session with its hash, whether it is valid now, and the ms until it expires.
SELECT s.created_at, s.expires_at, s.hash, s.expires_at > t.now,
       greatest(pg_catalog.floor(extract(epoch FROM s.expires_at - t.now) * 1000::numeric), 0)::bigint
  FROM {schema}.session s, (SELECT {now} AS now) AS t
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.api_key = :key AND s.id = :id
