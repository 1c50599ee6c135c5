-- The position of an event that is kept, none as long as it is not numbered.
-- $1 shard, $2 workspace, $3 stream, $4 version
SELECT f.position
  FROM {schema}.feed f
  JOIN {schema}.stream s ON s.shard = f.shard AND s.workspace = f.workspace AND s.name = f.stream
 WHERE f.shard = $1::smallint AND f.workspace = $2::text AND f.stream = $3::text AND f.version = $4::bigint
   AND f.version >= s.first
