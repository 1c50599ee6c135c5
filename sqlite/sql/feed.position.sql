-- The position of an event that is kept, none as long as it is not numbered.
-- ?1 shard, ?2 workspace, ?3 stream, ?4 version
-- do
SELECT f.position
  FROM holdfast_feed AS f
  JOIN holdfast_stream AS s ON s.shard = f.shard AND s.workspace = f.workspace AND s.name = f.stream
 WHERE f.shard = ?1 AND f.workspace = ?2 AND f.stream = ?3 AND f.version = ?4
   AND f.version >= s.first
