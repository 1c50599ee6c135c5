-- Streams whose closer's hold has run out, the oldest first.
SELECT s.workspace, s.name, s.epoch
  FROM {schema}.stream s
 WHERE s.shard = :shard AND (:workspace = '' OR s.workspace = :workspace)
   AND s.holder IS NOT NULL AND s.until <= (SELECT {now})
 ORDER BY s.until
 LIMIT :limit
