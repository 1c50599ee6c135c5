-- Lists streams on which a reaction is blocked, of webhooks or of others.
SELECT f.reaction || '/' || f.stream, f.updated_at, '', 0, f.reaction, f.stream, CAST(coalesce(f.failing, f.watermark + 1) AS TEXT), coalesce(substr(f.error, 1, 500), ''), CAST(f.failures AS TEXT)
  FROM holdfast_follow AS f INDEXED BY holdfast_follow_blocked
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.blocked = 1
   AND (f.reaction >= '$hook:' AND f.reaction < '$hook;') = (:webhooks = 1)
 ORDER BY f.reaction, f.stream
 LIMIT :limit
