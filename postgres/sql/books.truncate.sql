-- Drops the events of a stream below a version, unless somebody is closing it.
-- The last event stays.
-- $1 shard, $2 workspace, $3 stream, $4 first version to keep
WITH cur AS MATERIALIZED (
    SELECT s.shard, s.workspace, s.name, s.first, s.head, s.state, s.until
      FROM {schema}.stream s
     WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.name = $3::text
       FOR UPDATE
)
UPDATE {schema}.stream s
   SET first = $4::bigint
  FROM cur
 WHERE s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = cur.workspace AND s.name = cur.name
   AND cur.first < $4::bigint AND cur.head >= $4::bigint
   AND (cur.state <> 'closing' OR cur.until <= {now})
RETURNING s.first
