-- Closes a stream and retains its events: under the epoch of the closer or, without one,
-- while the stream is open, which increments the epoch.
-- :epoch (NULL none)
WITH cur AS MATERIALIZED (
    SELECT s.shard, s.workspace, s.name, s.state, s.epoch, s.until
      {include streams/lock}
)
UPDATE {schema}.stream s
   SET state = 'closed', closed = 'archive', holder = NULL, until = NULL, epoch = coalesce(:epoch, cur.epoch + 1)
  FROM cur
 WHERE s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = cur.workspace AND s.name = cur.name
   AND s.epoch = cur.epoch
   AND CASE WHEN :epoch IS NULL THEN cur.state = 'open' OR (cur.state = 'closing' AND cur.until <= {now})
            ELSE cur.state = 'closing' AND cur.epoch = :epoch AND cur.until > {now} END
RETURNING s.epoch
