-- Extends a hold that has not run out, at most until the handler's timeout: its holder was heard of. One that a
-- cancel has ended is told so, and not that it has run out; it stays as it is.
-- ?1 shard, ?2 workspace, ?3 batch, ?4 key, ?5 epoch, ?6 lease in ms
-- do
UPDATE holdfast_item AS i
   SET until = CASE WHEN i.holder IS NOT NULL THEN min({now} + ?6, i.taken_at + b.timeout) END, quiet = 0, lost = 0
  FROM holdfast_batch AS b
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?3
   AND i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?3 AND i.key = ?4
   AND (i.epoch = ?5 AND i.until > {now} AND i.taken_at + b.timeout > {now} OR i.epoch = ?5 + 1 AND i.state = 'cancelled')
RETURNING coalesce(until, late, {now}), (SELECT c.cancel_requested FROM holdfast_batch AS c WHERE c.shard = ?1 AND c.workspace = ?2 AND c.id = ?3)
