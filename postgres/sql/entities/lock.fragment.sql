-- Locks the entities of the members in the order of their keys.
FROM m JOIN {schema}.entity e
    ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
 ORDER BY m.shard, e.workspace, e.lifecycle, e.id
   FOR UPDATE OF e{skip}
