-- Returns the positions of retained events of a stream, as far as they are numbered.
SELECT f.version, f.position
  FROM {schema}.feed AS f
  JOIN {schema}.stream AS s ON s.shard = f.shard AND s.workspace = f.workspace AND s.name = f.stream
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.stream = :stream AND f.version BETWEEN :first AND :last
   AND f.version >= s.first
