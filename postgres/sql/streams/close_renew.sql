-- Renews the lease of a stream's closer, if it has not expired. The row is locked first: a
-- statement that waited for it must read the time afterwards.
WITH cur AS MATERIALIZED (
    SELECT s.shard, s.workspace, s.name, s.epoch, s.until
      FROM {schema}.stream s
     WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream AND s.state = 'closing'
       FOR UPDATE
)
UPDATE {schema}.stream s
   SET until = {now} + :lease::float8 * interval '1 ms'
  FROM cur
 WHERE s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = cur.workspace AND s.name = cur.name
   AND cur.epoch = :epoch AND cur.until > {now}
   AND s.epoch = :epoch
RETURNING s.until
