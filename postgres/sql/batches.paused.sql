-- Batches that are PAUSED and whose wallet has what they need by now: of one wallet in a
-- workspace, or of all on a shard.
-- $1 shard, $2 workspace ('' for all), $3 wallet ('' for all), $4 limit
SELECT b.workspace, b.id, b.handler
  FROM {schema}.batch b
 CROSS JOIN LATERAL (
       SELECT w.negative, w.balance FROM {schema}.wallet w WHERE w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet LIMIT 1) AS w
 WHERE b.shard + 0 = $1::smallint AND ($2::text = '' OR b.workspace = $2) AND ($3::text = '' OR b.wallet = $3)
   AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status = 'PAUSED' AND NOT b.cancel_requested
   AND (w.negative OR w.balance >= b.need)
 LIMIT $4::bigint
