-- Extends a hold that has not run out.
-- ?1 shard, ?2 workspace, ?3 queue, ?4 task, ?5 epoch, ?6 lease in ms
-- do
UPDATE holdfast_task AS k
   SET until = {now} + ?6
 WHERE k.shard = ?1 AND k.workspace = ?2 AND k.queue = ?3 AND k.id = ?4
   AND k.epoch = ?5 AND k.until > {now}
RETURNING until
