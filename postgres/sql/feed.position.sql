-- The positions of some events of a stream that are kept, as far as they are numbered.
-- $1 shard, $2 workspace, $3 stream, $4 first version, $5 last
SELECT f.version, f.position
  FROM {schema}.feed f
  JOIN {schema}.stream s ON s.shard = f.shard AND s.workspace = f.workspace AND s.name = f.stream
 WHERE f.shard = $1::smallint AND f.workspace = $2::text AND f.stream = $3::text AND f.version BETWEEN $4::bigint AND $5::bigint
   AND f.version >= s.first
