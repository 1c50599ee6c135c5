-- Renews a lease that has not expired, at most until the handler's timeout, and records that its holder
-- reported. A lease that a cancel has ended is reported as cancelled, not as expired, and is not changed. The row is
-- locked first: a statement that waited for it must read the time afterwards.
WITH cur AS MATERIALIZED (
    SELECT i.shard, i.workspace, i.batch, i.key, i.epoch, i.state, i.until, i.taken_at, b.timeout, b.cancel_requested
      FROM {schema}.item i
     CROSS JOIN LATERAL (
           SELECT b.timeout, b.cancel_requested FROM {schema}.batch b
            WHERE b.shard = i.shard AND b.workspace = i.workspace AND b.id = i.batch
            LIMIT 1) AS b
     WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = :key
       FOR UPDATE OF i
)
UPDATE {schema}.item i
   SET until = CASE WHEN cur.state = 'running' THEN least({now} + :lease::float8 * interval '1 ms', cur.taken_at + cur.timeout::float8 * interval '1 ms') END,
       quiet = false, lost = 0
  FROM cur
 WHERE i.shard = ANY (ARRAY[cur.shard]) AND i.workspace = cur.workspace AND i.batch = cur.batch AND i.key = cur.key AND i.epoch = cur.epoch
   AND (cur.epoch = :epoch AND cur.until > {now} AND cur.taken_at + cur.timeout::float8 * interval '1 ms' > {now} AND i.until IS NOT NULL
        OR cur.epoch = :epoch + 1 AND cur.state = 'cancelled')
RETURNING coalesce(i.until, i.late, {now}), cur.cancel_requested OR cur.state = 'cancelled'
