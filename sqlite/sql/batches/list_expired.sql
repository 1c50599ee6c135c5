-- Lists items whose leases have expired, with the number of hand-outs lost in a row, this one included.
SELECT b.workspace, b.id, b.handler, i.key, i.epoch, CASE WHEN i.quiet THEN i.lost + 1 ELSE 0 END
  FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
 CROSS JOIN holdfast_item AS i INDEXED BY holdfast_item_held ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.holder IS NOT NULL AND i.until <= {now}
 WHERE b.shard = :shard AND (:workspace = '' OR b.workspace = :workspace) AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.running > 0
 ORDER BY i.until
 LIMIT :limit
