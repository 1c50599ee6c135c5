-- Finds the first event of an operation of an entity, among those that were written soon after its id was made.
-- :operation and :upto ids as text
SELECT h.stream, h.version
  FROM {schema}.history h
 WHERE h.shard = :shard AND h.workspace = :workspace COLLATE "default" AND -- COLLATE makes the planner use the order of ids, not the index of streams
       h.id > :operation::uuid AND h.id < :upto::uuid
   AND pg_catalog.left(h.stream, 8) = '$entity/'
   AND :operation IN (h.data ->> 'operation', h.data #>> '{note,operation}')
 ORDER BY h.shard, h.id, h.n
 LIMIT 1
