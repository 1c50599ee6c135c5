-- Returns a batch.
SELECT b.id, b.wallet, b.handler, b.status, b.parallel, b.attempts, b.allowed, b.timeout, b.artifacts, b.sealed, b.cancel_requested, b.items, b.next,
       b.waiting, b.running, b.succeeded, b.accepted, b.failed, b.cancelled, b.dirty, b.charged, b.refunded, b.version, coalesce(b.error, ''),
       b.created_at, b.updated_at, coalesce(b.pruned_at, {no_time}), coalesce(b.about{text}, '')
  FROM {schema}.batch AS b
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
