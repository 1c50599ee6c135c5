-- Takes a stream to close it, if it has no closer or the closer's lease has expired.
-- Increments the epoch.
WITH cur AS MATERIALIZED (
    SELECT s.shard, s.workspace, s.name, s.state, s.until
      {include streams/lock}
)
UPDATE {schema}.stream s
   SET state = 'closing', holder = :holder, epoch = s.epoch + 1, until = {now} + :lease::float8 * interval '1 ms'
  FROM cur
 WHERE s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = cur.workspace AND s.name = cur.name
   AND (cur.state = 'open' OR (cur.state = 'closing' AND cur.until <= {now}))
RETURNING s.epoch, s.until
