-- Extends a hold that has not run out. The row is locked first: a statement
-- that waited for it must look at the time afterwards.
-- $1 shard, $2 workspace, $3 key, $4 epoch, $5 lease in ms
WITH cur AS (
    SELECT r.shard, r.workspace, r.key, r.state, r.epoch, r.until
      FROM {schema}.request r
     WHERE r.shard = $1::smallint AND r.workspace = $2::text AND r.key = $3::text
       FOR UPDATE
)
UPDATE {schema}.request r
   SET until = {now} + $5::bigint::float8 * interval '1 ms'
  FROM cur
 WHERE r.shard = ANY (ARRAY[cur.shard]) AND r.workspace = cur.workspace AND r.key = cur.key
   AND cur.state = 'held' AND cur.epoch = $4::bigint AND cur.until > {now}
   AND r.epoch = $4::bigint
RETURNING r.until
