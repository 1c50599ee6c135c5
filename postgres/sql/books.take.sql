-- Takes a stream to close it: nobody is closing it, or whoever was has lost his
-- hold. Taking adds one to the epoch.
-- $1 shard, $2 workspace, $3 stream, $4 holder, $5 lease in ms
WITH cur AS MATERIALIZED (
    SELECT s.shard, s.workspace, s.name, s.state, s.until
      FROM {schema}.stream s
     WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.name = $3::text
       FOR UPDATE
)
UPDATE {schema}.stream s
   SET state = 'closing', holder = $4::text, epoch = s.epoch + 1, until = {now} + $5::bigint::float8 * interval '1 ms'
  FROM cur
 WHERE s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = cur.workspace AND s.name = cur.name
   AND (cur.state = 'open' OR (cur.state = 'closing' AND cur.until <= {now}))
RETURNING s.epoch, s.until
