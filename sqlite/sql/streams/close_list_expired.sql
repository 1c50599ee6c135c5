-- Lists streams whose closer's lease has expired, the oldest first.
SELECT s.workspace, s.name, s.epoch
  FROM holdfast_stream AS s
 WHERE s.shard = :shard AND (:workspace = '' OR s.workspace = :workspace)
   AND s.holder IS NOT NULL AND s.until <= {now}
 ORDER BY s.until
 LIMIT :limit
