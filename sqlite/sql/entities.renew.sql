-- Extends a hold that has not run out.
-- ?1 shard, ?2 workspace, ?3 lifecycle, ?4 entity, ?5 operation, ?6 epoch, ?7 lease in ms
-- do
UPDATE holdfast_entity AS e
   SET until = {now} + ?7
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?3 AND e.id = ?4
   AND e.operation = ?5 AND e.epoch = ?6 AND e.until > {now}
RETURNING until
