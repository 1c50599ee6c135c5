-- Holds that have run out, the oldest first.
-- ?1 shard, ?2 workspace ('' for all), ?3 limit
-- do
SELECT k.workspace, k.queue, k.id, k.epoch, k.deaths
  FROM holdfast_task AS k
 WHERE k.shard = ?1 AND (?2 = '' OR k.workspace = ?2)
   AND k.holder IS NOT NULL AND k.until <= {now}
 ORDER BY k.until
 LIMIT +?3
