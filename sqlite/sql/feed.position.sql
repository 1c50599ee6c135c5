-- The positions of some events of a stream that are kept, as far as they are numbered.
-- ?1 shard, ?2 workspace, ?3 stream, ?4 first version, ?5 last
-- do
SELECT f.version, f.position
  FROM holdfast_feed AS f
  JOIN holdfast_stream AS s ON s.shard = f.shard AND s.workspace = f.workspace AND s.name = f.stream
 WHERE f.shard = ?1 AND f.workspace = ?2 AND f.stream = ?3 AND f.version BETWEEN ?4 AND ?5
   AND f.version >= s.first
