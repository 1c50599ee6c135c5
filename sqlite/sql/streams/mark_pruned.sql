-- Records up to which version the events of a stream are deleted.
UPDATE holdfast_stream AS s
   SET pruned = :to
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
   AND s.pruned = :from AND s.first >= :to
RETURNING pruned
