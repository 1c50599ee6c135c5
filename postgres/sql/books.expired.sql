-- Streams whose closer's hold has run out, the oldest first.
-- $1 shard, $2 workspace ('' for all), $3 limit
SELECT s.workspace, s.name, s.epoch
  FROM {schema}.stream s
 WHERE s.shard = $1::smallint AND ($2::text = '' OR s.workspace = $2::text)
   AND s.holder IS NOT NULL AND s.until <= (SELECT {now})
 ORDER BY s.until
 LIMIT $3::bigint
