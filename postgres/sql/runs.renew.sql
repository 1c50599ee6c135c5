-- Extends a hold that has not run out, at most until the step's timeout: its holder was heard of. The row is locked
-- first: a statement that waited for it must look at the time afterwards.
-- $1 shard, $2 workspace, $3 run, $4 step, $5 visit, $6 epoch, $7 lease in ms
WITH cur AS MATERIALIZED (
    SELECT s.shard, s.workspace, s.run, s.name, s.visit, s.epoch, s.until, s.taken_at, s.timeout, r.cancel_requested
      FROM {schema}.step s
     CROSS JOIN LATERAL (
           SELECT r.cancel_requested FROM {schema}.run r
            WHERE r.shard = s.shard AND r.workspace = s.workspace AND r.id = s.run
            LIMIT 1) AS r
     WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.run = $3::text AND s.name = $4::text AND s.visit = $5::bigint
       FOR UPDATE OF s
)
UPDATE {schema}.step s
   SET until = least({now} + $7::bigint::float8 * interval '1 ms', cur.taken_at + cur.timeout::float8 * interval '1 ms'), quiet = false, lost = 0
  FROM cur
 WHERE s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = cur.workspace AND s.run = cur.run AND s.name = cur.name AND s.visit = cur.visit
   AND cur.epoch = $6::bigint AND cur.until > {now} AND cur.taken_at + cur.timeout::float8 * interval '1 ms' > {now}
   AND s.epoch = $6::bigint AND s.until IS NOT NULL
RETURNING s.until, cur.cancel_requested
