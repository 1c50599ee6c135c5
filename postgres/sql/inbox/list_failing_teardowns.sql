-- Lists batches whose teardown or cleanup failed and is tried again.
SELECT b.id, b.updated_at, b.handler, coalesce(b.due_at, 'epoch'), b.id, b.status, b.dirty::text, pg_catalog.substr(b.error, 1, 500), ''
  FROM {schema}.batch b
 WHERE b.shard + 0 = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.error IS NOT NULL AND (b.cancel_requested OR b.dirty > 0)
 ORDER BY b.id
 LIMIT :limit
