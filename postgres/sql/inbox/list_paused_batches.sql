-- Lists batches that are PAUSED because their wallet cannot pay for the next item.
SELECT b.id, b.updated_at, b.wallet, 'epoch'::timestamptz, b.id, b.wallet, b.need::text, w.balance::text, b.version::text
  FROM {schema}.batch b
 CROSS JOIN LATERAL (
       SELECT w.balance FROM {schema}.wallet w WHERE w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet LIMIT 1) AS w
 WHERE b.shard + 0 = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status = 'PAUSED' AND NOT b.cancel_requested
 ORDER BY b.id
 LIMIT :limit
