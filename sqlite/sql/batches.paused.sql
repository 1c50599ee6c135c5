-- Batches that are PAUSED and whose wallet has what they need by now: of one wallet in a
-- workspace, or of all on a shard.
-- ?1 shard, ?2 workspace ('' for all), ?3 wallet ('' for all), ?4 limit
-- do
SELECT b.workspace, b.id, b.handler
  FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
  JOIN holdfast_wallet AS w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
 WHERE b.shard = ?1 AND (?2 = '' OR b.workspace = ?2) AND (?3 = '' OR b.wallet = ?3)
   AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status = 'PAUSED' AND NOT b.cancel_requested
   AND (w.negative OR w.balance >= b.need)
 LIMIT +?4
