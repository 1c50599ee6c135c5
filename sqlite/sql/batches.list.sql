-- Batches in the order of their ids.
-- ?1 shard, ?2 workspace, ?3 behind which, ?4 status ('' for all), ?5 limit
-- do
SELECT b.id, b.wallet, b.handler, b.status, b.parallel, b.attempts, b.allowed, b.timeout, b.artifacts, b.sealed, b.cancel_requested, b.items, b.next,
       b.waiting, b.running, b.succeeded, b.accepted, b.failed, b.cancelled, b.dirty, b.charged, b.refunded, b.version, coalesce(b.error, ''),
       b.created_at, b.updated_at
  FROM holdfast_batch AS b
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id > ?3 AND (?4 = '' OR b.status = ?4)
 ORDER BY b.id
 LIMIT +?5
