-- Extends a hold that has not run out, at most until the handler's timeout: its holder was heard of. One that a
-- cancel has ended is told so, and not that it has run out; it stays as it is. The row is
-- locked first: a statement that waited for it must look at the time afterwards.
-- $1 shard, $2 workspace, $3 batch, $4 key, $5 epoch, $6 lease in ms
WITH cur AS MATERIALIZED (
    SELECT i.shard, i.workspace, i.batch, i.key, i.epoch, i.state, i.until, i.taken_at, b.timeout, b.cancel_requested
      FROM {schema}.item i
     CROSS JOIN LATERAL (
           SELECT b.timeout, b.cancel_requested FROM {schema}.batch b
            WHERE b.shard = i.shard AND b.workspace = i.workspace AND b.id = i.batch
            LIMIT 1) AS b
     WHERE i.shard = $1::smallint AND i.workspace = $2::text AND i.batch = $3::text AND i.key = $4::text
       FOR UPDATE OF i
)
UPDATE {schema}.item i
   SET until = CASE WHEN cur.state = 'running' THEN least({now} + $6::bigint::float8 * interval '1 ms', cur.taken_at + cur.timeout::float8 * interval '1 ms') END,
       quiet = false, lost = 0
  FROM cur
 WHERE i.shard = ANY (ARRAY[cur.shard]) AND i.workspace = cur.workspace AND i.batch = cur.batch AND i.key = cur.key AND i.epoch = cur.epoch
   AND (cur.epoch = $5::bigint AND cur.until > {now} AND cur.taken_at + cur.timeout::float8 * interval '1 ms' > {now} AND i.until IS NOT NULL
        OR cur.epoch = $5::bigint + 1 AND cur.state = 'cancelled')
RETURNING coalesce(i.until, i.late, {now}), cur.cancel_requested OR cur.state = 'cancelled'
