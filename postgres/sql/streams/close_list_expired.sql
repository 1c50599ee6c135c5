-- Lists streams whose closer's lease has expired, the oldest first.
SELECT s.workspace, s.name, s.epoch
  FROM {schema}.stream s
 WHERE s.shard = :shard AND (:workspace = '' OR s.workspace = :workspace)
   AND s.holder IS NOT NULL AND s.until <= (SELECT {now})
 ORDER BY s.until
 LIMIT :limit
