-- Locks the requests of the members in the order of their keys.
FROM m JOIN {schema}.request r
    ON r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.key = m.key
 ORDER BY m.shard, r.workspace, r.key
   FOR UPDATE OF r
