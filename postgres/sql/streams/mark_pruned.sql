-- Records up to which version the events of a stream are deleted, if they are.
UPDATE {schema}.stream s
   SET pruned = :to
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
   AND s.pruned = :from AND s.first >= :to
   AND coalesce((SELECT e.version >= :to FROM {schema}.event e
                  WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name AND e.version >= :from
                  ORDER BY e.version -- uses the index with this order
                  LIMIT 1), true)
RETURNING s.pruned
