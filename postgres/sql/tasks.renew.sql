-- Extends a hold that has not run out. The row is locked first: a statement
-- that waited for it must look at the time afterwards.
-- $1 shard, $2 workspace, $3 queue, $4 task, $5 epoch, $6 lease in ms
WITH cur AS (
    SELECT k.shard, k.workspace, k.queue, k.id, k.epoch, k.until
      FROM {schema}.task k
     WHERE k.shard = $1::smallint AND k.workspace = $2::text AND k.queue = $3::text AND k.id = $4::text
       FOR UPDATE
)
UPDATE {schema}.task k
   SET until = {now} + $6::bigint * interval '1 ms'
  FROM cur
 WHERE k.shard = cur.shard AND k.workspace = cur.workspace AND k.queue = cur.queue AND k.id = cur.id
   AND cur.epoch = $5::bigint AND cur.until > {now}
   AND k.epoch = $5::bigint
RETURNING k.until
