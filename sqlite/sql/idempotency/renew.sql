-- Renews a lease that has not expired.
UPDATE holdfast_request AS r
   SET until = {now} + :lease
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.key = :key
   AND r.state = 'held' AND r.epoch = :epoch AND r.until > {now}
RETURNING until
