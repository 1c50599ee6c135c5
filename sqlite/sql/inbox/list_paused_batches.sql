-- Lists batches that are PAUSED because their wallet cannot pay for the next item.
SELECT b.id, b.updated_at, b.wallet, 0, b.id, b.wallet, CAST(b.need AS TEXT), CAST(w.balance AS TEXT), CAST(b.version AS TEXT)
  FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
  JOIN holdfast_wallet AS w ON w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status = 'PAUSED' AND NOT b.cancel_requested
 ORDER BY b.id
 LIMIT :limit
