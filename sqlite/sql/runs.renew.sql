-- Extends a hold that has not run out, at most until the step's timeout: its holder was heard of.
-- ?1 shard, ?2 workspace, ?3 run, ?4 step, ?5 visit, ?6 epoch, ?7 lease in ms
-- do
UPDATE holdfast_step AS s
   SET until = min({now} + ?7, s.taken_at + s.timeout), quiet = 0, lost = 0
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.run = ?3 AND s.name = ?4 AND s.visit = ?5
   AND s.epoch = ?6 AND s.until > {now} AND s.taken_at + s.timeout > {now}
RETURNING until, (SELECT r.cancel_requested FROM holdfast_run AS r WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?3)
