-- Removes the events of a stream below a version, unless the stream is being closed. The
-- last event stays.
WITH cur AS MATERIALIZED (
    SELECT s.shard, s.workspace, s.name, s.first, s.head, s.state, s.until
      {include streams/lock}
)
UPDATE {schema}.stream s
   SET first = :first
  FROM cur
 WHERE s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = cur.workspace AND s.name = cur.name
   AND cur.first < :first AND cur.head >= :first
   AND (cur.state <> 'closing' OR cur.until <= {now})
RETURNING s.first
