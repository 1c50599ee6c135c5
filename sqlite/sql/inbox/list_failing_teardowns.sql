-- Lists batches whose teardown or cleanup failed and is tried again.
SELECT b.id, b.updated_at, b.handler, coalesce(b.due_at, 0), b.id, b.status, CAST(b.dirty AS TEXT), substr(b.error, 1, 500), ''
  FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.error IS NOT NULL AND (b.cancel_requested OR b.dirty > 0)
 ORDER BY b.id
 LIMIT :limit
