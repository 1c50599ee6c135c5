-- Opens a stream again that was being closed: by its closer, as long as the hold
-- lasts, or by a sweep when it has run out.
-- $1 shard, $2 workspace, $3 stream, $4 epoch, $5 1 for a sweep
WITH cur AS MATERIALIZED (
    SELECT s.shard, s.workspace, s.name, s.epoch, s.until
      FROM {schema}.stream s
     WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.name = $3::text AND s.state = 'closing'
       FOR UPDATE
)
UPDATE {schema}.stream s
   SET state = 'open', holder = NULL, until = NULL
  FROM cur
 WHERE s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = cur.workspace AND s.name = cur.name
   AND cur.epoch = $4::bigint AND (cur.until <= {now}) = ($5::bigint = 1)
   AND s.epoch = $4::bigint
RETURNING s.epoch
