-- Extends a hold that has not run out. The row is locked first: a statement that
-- waited for it must look at the time afterwards.
-- $1 shard, $2 workspace, $3 lifecycle, $4 entity, $5 operation, $6 epoch, $7 lease in ms
WITH cur AS (
    SELECT e.shard, e.workspace, e.lifecycle, e.id, e.operation, e.epoch, e.until
      FROM {schema}.entity e
     WHERE e.shard = $1::smallint AND e.workspace = $2::text AND e.lifecycle = $3::text AND e.id = $4::text
       FOR UPDATE
)
UPDATE {schema}.entity e
   SET until = {now} + $7::bigint * interval '1 ms'
  FROM cur
 WHERE e.shard = cur.shard AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
   AND cur.operation = $5::text AND cur.epoch = $6::bigint AND cur.until > {now}
   AND e.epoch = $6::bigint
RETURNING e.until
