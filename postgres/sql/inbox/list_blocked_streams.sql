-- Lists streams on which a reaction is blocked, of webhooks or of others. A webhook's reaction is named $hook:<id>.
SELECT f.reaction || '/' || f.stream, f.updated_at, '', 'epoch'::timestamptz, f.reaction, f.stream, coalesce(f.failing, f.watermark + 1)::text, coalesce(pg_catalog.substr(f.error, 1, 500), ''), f.failures::text
  FROM {schema}.follow f
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.blocked
   AND (f.reaction >= '$hook:' AND f.reaction < '$hook;') = (:webhooks = 1)
 ORDER BY f.reaction, f.stream
 LIMIT :limit
