-- Extends the hold of whoever closes a stream, if it has not run out. The row is
-- locked first: a statement that waited for it must look at the time afterwards.
-- $1 shard, $2 workspace, $3 stream, $4 epoch, $5 lease in ms
WITH cur AS MATERIALIZED (
    SELECT s.shard, s.workspace, s.name, s.epoch, s.until
      FROM {schema}.stream s
     WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.name = $3::text AND s.state = 'closing'
       FOR UPDATE
)
UPDATE {schema}.stream s
   SET until = {now} + $5::bigint::float8 * interval '1 ms'
  FROM cur
 WHERE s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = cur.workspace AND s.name = cur.name
   AND cur.epoch = $4::bigint AND cur.until > {now}
   AND s.epoch = $4::bigint
RETURNING s.until
