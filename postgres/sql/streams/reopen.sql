-- Reopens a stream that was being closed: by its closer while the lease lasts, or by a sweep
-- after the lease has expired.
-- :sweep 1 for a sweep
WITH cur AS MATERIALIZED (
    SELECT s.shard, s.workspace, s.name, s.epoch, s.until
      FROM {schema}.stream s
     WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream AND s.state = 'closing'
       FOR UPDATE
)
UPDATE {schema}.stream s
   SET state = 'open', holder = NULL, until = NULL
  FROM cur
 WHERE s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = cur.workspace AND s.name = cur.name
   AND cur.epoch = :epoch AND (cur.until <= {now}) = (:sweep = 1)
   AND s.epoch = :epoch
RETURNING s.epoch
