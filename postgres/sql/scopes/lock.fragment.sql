-- Locks the scopes of the members in the order of their keys.
FROM m JOIN {schema}.scope s
    ON s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.kind = m.kind AND s.id = m.scope
 ORDER BY m.shard, s.workspace, s.kind, s.id
   FOR UPDATE OF s{skip}
