-- Deletes events of a stream that are below the first one kept.
-- $1 shard, $2 workspace, $3 stream, $4 from, $5 to a version, not included
DELETE FROM {schema}.event e
 USING {schema}.stream s
 WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.name = $3::text AND s.first >= $5::bigint
   AND e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name
   AND e.version >= $4::bigint AND e.version < $5::bigint
