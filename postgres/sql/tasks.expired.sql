-- Holds that have run out, the oldest first.
-- $1 shard, $2 workspace ('' for all), $3 limit
SELECT k.workspace, k.queue, k.id, k.epoch, k.deaths
  FROM {schema}.task k
 WHERE k.shard = $1::smallint AND ($2::text = '' OR k.workspace = $2::text)
   AND k.holder IS NOT NULL AND k.until <= {now}
 ORDER BY k.until
 LIMIT $3::bigint
