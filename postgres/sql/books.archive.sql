-- Closes a stream and keeps its events: under the epoch of whoever is closing it
-- or, without one, as it is open, which adds one to the epoch.
-- $1 shard, $2 workspace, $3 stream, $4 epoch (NULL none)
WITH cur AS MATERIALIZED (
    SELECT s.shard, s.workspace, s.name, s.state, s.epoch, s.until
      FROM {schema}.stream s
     WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.name = $3::text
       FOR UPDATE
)
UPDATE {schema}.stream s
   SET state = 'closed', closed = 'archive', holder = NULL, until = NULL, epoch = coalesce($4::bigint, cur.epoch + 1)
  FROM cur
 WHERE s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = cur.workspace AND s.name = cur.name
   AND s.epoch = cur.epoch
   AND CASE WHEN $4::bigint IS NULL THEN cur.state = 'open' OR (cur.state = 'closing' AND cur.until <= {now})
            ELSE cur.state = 'closing' AND cur.epoch = $4::bigint AND cur.until > {now} END
RETURNING s.epoch
