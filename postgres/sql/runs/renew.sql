-- Renews a lease that has not expired, at most until the step's timeout, and records that its holder reported. The row is
-- locked first: a statement that waited for it must read the time afterwards.
WITH cur AS MATERIALIZED (
    SELECT s.shard, s.workspace, s.run, s.name, s.visit, s.epoch, s.until, s.taken_at, s.timeout, r.cancel_requested
      FROM {schema}.step s
     CROSS JOIN LATERAL (
           SELECT r.cancel_requested FROM {schema}.run r
            WHERE r.shard = s.shard AND r.workspace = s.workspace AND r.id = s.run
            LIMIT 1) AS r
     WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit
       FOR UPDATE OF s
)
UPDATE {schema}.step s
   SET until = least({now} + :lease::float8 * interval '1 ms', cur.taken_at + cur.timeout::float8 * interval '1 ms'), quiet = false, lost = 0
  FROM cur
 WHERE s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = cur.workspace AND s.run = cur.run AND s.name = cur.name AND s.visit = cur.visit
   AND cur.epoch = :epoch AND cur.until > {now} AND cur.taken_at + cur.timeout::float8 * interval '1 ms' > {now}
   AND s.epoch = :epoch AND s.until IS NOT NULL
RETURNING s.until, cur.cancel_requested
