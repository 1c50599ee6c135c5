-- Renews a lease that has not expired, at most until the step's timeout, and records that its holder reported.
UPDATE holdfast_step AS s
   SET until = min({now} + :lease, s.taken_at + s.timeout), quiet = 0, lost = 0
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit
   AND s.epoch = :epoch AND s.until > {now} AND s.taken_at + s.timeout > {now}
RETURNING until, (SELECT r.cancel_requested {include runs/by_id})
