-- Extends a hold that has not run out, at most until the handler's timeout. The row is
-- locked first: a statement that waited for it must look at the time afterwards.
-- $1 shard, $2 workspace, $3 batch, $4 key, $5 epoch, $6 lease in ms
WITH cur AS MATERIALIZED (
    SELECT i.shard, i.workspace, i.batch, i.key, i.epoch, i.until, i.taken_at, b.timeout, b.cancel_requested
      FROM {schema}.item i
     CROSS JOIN LATERAL (
           SELECT b.timeout, b.cancel_requested FROM {schema}.batch b
            WHERE b.shard = i.shard AND b.workspace = i.workspace AND b.id = i.batch
            LIMIT 1) AS b
     WHERE i.shard = $1::smallint AND i.workspace = $2::text AND i.batch = $3::text AND i.key = $4::text
       FOR UPDATE OF i
)
UPDATE {schema}.item i
   SET until = least({now} + $6::bigint * interval '1 ms', cur.taken_at + cur.timeout * interval '1 ms')
  FROM cur
 WHERE i.shard = cur.shard AND i.workspace = cur.workspace AND i.batch = cur.batch AND i.key = cur.key
   AND cur.epoch = $5::bigint AND cur.until > {now} AND cur.taken_at + cur.timeout * interval '1 ms' > {now}
   AND i.epoch = $5::bigint AND i.until IS NOT NULL
RETURNING i.until, cur.cancel_requested
