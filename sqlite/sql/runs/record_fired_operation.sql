-- Records once which operation a transition has fired, under a lease that has not expired.
-- do
UPDATE holdfast_step AS s
   SET fired = :operation
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit
   AND s.epoch = :epoch AND s.until > {now} AND s.fired IS NULL
RETURNING 1
-- else
SELECT 1
