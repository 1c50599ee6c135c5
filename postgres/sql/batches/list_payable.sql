-- Lists PAUSED batches whose wallet can now pay: of one wallet in a workspace, or of all on
-- a shard.
-- :wallet ('' for all)
SELECT b.workspace, b.id, b.handler
  FROM {schema}.batch b
 CROSS JOIN LATERAL (
       SELECT w.negative, w.balance FROM {schema}.wallet w WHERE w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet LIMIT 1) AS w
 WHERE b.shard + 0 = :shard AND (:workspace = '' OR b.workspace = :workspace) AND (:wallet = '' OR b.wallet = :wallet)
   AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status = 'PAUSED' AND NOT b.cancel_requested
   AND (w.negative OR w.balance >= b.need)
 LIMIT :limit
