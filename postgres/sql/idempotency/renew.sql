-- Renews a lease that has not expired. The row is locked first: a statement that waited for
-- it must read the time afterwards.
WITH cur AS (
    SELECT r.shard, r.workspace, r.key, r.state, r.epoch, r.until
      FROM {schema}.request r
     WHERE r.shard = :shard AND r.workspace = :workspace AND r.key = :key
       FOR UPDATE
)
UPDATE {schema}.request r
   SET until = {now} + :lease::float8 * interval '1 ms'
  FROM cur
 WHERE r.shard = ANY (ARRAY[cur.shard]) AND r.workspace = cur.workspace AND r.key = cur.key
   AND cur.state = 'held' AND cur.epoch = :epoch AND cur.until > {now}
   AND r.epoch = :epoch
RETURNING r.until
