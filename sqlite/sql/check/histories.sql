-- Finds histories of an entity, a scope or a batch that does not exist, one page of histories at a time, and returns the last history of the page too.
-- Of a deleted scope or bulk, the history may be all that is left.
{include check/headless history; IN ('$entity', '$scope', '$batch');
    CASE c.prefix WHEN '$entity' THEN NOT EXISTS (
        SELECT 1 FROM holdfast_entity AS x
         WHERE x.shard = c.shard AND x.workspace = c.workspace
           AND x.lifecycle = substr(c.rest, 1, instr(c.rest, '/') - 1)
           AND x.id = substr(c.rest, instr(c.rest, '/') + 1))
    WHEN '$batch' THEN NOT EXISTS (
        SELECT 1 FROM holdfast_batch AS x
         WHERE x.shard = c.shard AND x.workspace = c.workspace AND x.id = c.rest)
        AND (substr(c.rest, 1, 6) <> '$bulk/'
             OR (SELECT h.name FROM holdfast_history AS h
                  WHERE h.shard = c.shard AND h.workspace = c.workspace AND h.stream = c.stream
                  ORDER BY h.version DESC
                  LIMIT 1) NOT IN ('completed', 'cancelled'))
    ELSE NOT EXISTS (
        SELECT 1 FROM holdfast_scope AS x
         WHERE x.shard = c.shard AND x.workspace = c.workspace
           AND x.kind = substr(c.rest, 1, instr(c.rest, '/') - 1)
           AND x.id = substr(c.rest, instr(c.rest, '/') + 1))
        AND (SELECT h.name FROM holdfast_history AS h
              WHERE h.shard = c.shard AND h.workspace = c.workspace AND h.stream = c.stream
              ORDER BY h.version DESC
              LIMIT 1) NOT IN ('deleted', 'expired') END}
