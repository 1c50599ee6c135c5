-- Notes which operation a transition has fired, under a hold that has not run out: once.
-- ?1 shard, ?2 workspace, ?3 command, ?4 run, ?5 step, ?6 visit, ?7 epoch, ?8 operation
-- do
UPDATE holdfast_step AS s
   SET fired = ?8
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.run = ?4 AND s.name = ?5 AND s.visit = ?6
   AND s.epoch = ?7 AND s.until > {now} AND s.fired IS NULL
RETURNING 1
-- else
SELECT 1
