-- Notes how far the events of a stream are deleted, if they are.
-- $1 shard, $2 workspace, $3 stream, $4 from, $5 to a version, not included
UPDATE {schema}.stream s
   SET pruned = $5::bigint
 WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.name = $3::text
   AND s.pruned = $4::bigint AND s.first >= $5::bigint
   AND coalesce((SELECT e.version >= $5::bigint FROM {schema}.event e
                  WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name AND e.version >= $4::bigint
                  ORDER BY e.version -- by the index that has this order
                  LIMIT 1), true)
RETURNING s.pruned
