-- Extends a hold that has not run out, at most until the handler's timeout.
-- ?1 shard, ?2 workspace, ?3 batch, ?4 key, ?5 epoch, ?6 lease in ms
-- do
UPDATE holdfast_item AS i
   SET until = min({now} + ?6, i.taken_at + b.timeout)
  FROM holdfast_batch AS b
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?3
   AND i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?3 AND i.key = ?4
   AND i.epoch = ?5 AND i.until > {now} AND i.taken_at + b.timeout > {now}
RETURNING until, (SELECT c.cancel_requested FROM holdfast_batch AS c WHERE c.shard = ?1 AND c.workspace = ?2 AND c.id = ?3)
