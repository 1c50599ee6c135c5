-- Finds the first event of an operation of an entity, among those that were written soon after its id was made.
SELECT h.stream, h.version
  FROM holdfast_history AS h
 WHERE h.shard = :shard AND h.workspace = :workspace AND h.id > unhex(:operation, '-') AND h.id < unhex(:upto, '-')
   AND substr(h.stream, 1, 8) = '$entity/'
   AND :operation IN (h.data ->> '$.operation', h.data ->> '$.note.operation')
 ORDER BY h.id, h.n
 LIMIT 1
