-- Lists PAUSED batches whose wallet can now pay: of one wallet in a workspace, or of all on a shard.
SELECT b.workspace, b.id, b.handler
  FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
  JOIN holdfast_wallet AS w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
 WHERE b.shard = :shard AND (:workspace = '' OR b.workspace = :workspace) AND (:wallet = '' OR b.wallet = :wallet)
   AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status = 'PAUSED' AND NOT b.cancel_requested
   AND (w.negative OR w.balance >= b.need)
 LIMIT :limit
