-- Notes how far the events of a stream are deleted.
-- $1 shard, $2 workspace, $3 stream, $4 from, $5 to a version, not included
UPDATE {schema}.stream s
   SET pruned = $5::bigint
 WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.name = $3::text
   AND s.pruned = $4::bigint AND s.first >= $5::bigint
RETURNING s.pruned
