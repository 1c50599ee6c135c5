-- Extends the hold on an item that is cleaned up after.
-- $1 shard, $2 workspace, $3 batch, $4 key, $5 sweeps, $6 lease in ms
UPDATE {schema}.item i
   SET sweep_at = {now} + $6::bigint::float8 * interval '1 ms'
 WHERE i.shard = $1::smallint AND i.workspace = $2::text AND i.batch = $3::text AND i.key = $4::text
   AND i.sweeps = $5::bigint AND coalesce(i.sweep_at, '-infinity') > {now} -- coalesce: by its key, not by the index of what is to be swept
RETURNING i.sweep_at
