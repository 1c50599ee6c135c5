-- Streams whose closer's hold has run out, the oldest first.
-- ?1 shard, ?2 workspace ('' for all), ?3 limit
-- do
SELECT s.workspace, s.name, s.epoch
  FROM holdfast_stream AS s
 WHERE s.shard = ?1 AND (?2 = '' OR s.workspace = ?2)
   AND s.holder IS NOT NULL AND s.until <= {now}
 ORDER BY s.until
 LIMIT +?3
