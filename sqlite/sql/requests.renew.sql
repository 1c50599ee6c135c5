-- Extends a hold that has not run out.
-- ?1 shard, ?2 workspace, ?3 key, ?4 epoch, ?5 lease in ms
-- do
UPDATE holdfast_request AS r
   SET until = {now} + ?5
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.key = ?3
   AND r.state = 'held' AND r.epoch = ?4 AND r.until > {now}
RETURNING until
