-- Renews a lease that has not expired, at most until the handler's timeout, and records that its holder reported.
UPDATE holdfast_item AS i
   SET until = CASE WHEN i.holder IS NOT NULL THEN min({now} + :lease, i.taken_at + b.timeout) END, quiet = 0, lost = 0
  {include batches/by_id}
   AND i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = :key
   AND (i.epoch = :epoch AND i.until > {now} AND i.taken_at + b.timeout > {now} OR i.epoch = :epoch + 1 AND i.state = 'cancelled')
RETURNING coalesce(until, late, {now}), (SELECT c.cancel_requested FROM holdfast_batch AS c WHERE c.shard = :shard AND c.workspace = :workspace AND c.id = :batch)
