-- Finds histories of an entity, a scope or a batch that does not exist, one page of histories at a time, and returns the last history of the page too.
{include check/page j.stream, '', -1, j.events, j.last; c.stream;
    CASE c.prefix WHEN '$entity' THEN NOT EXISTS (
        SELECT 1 FROM holdfast_entity AS x
         WHERE x.shard = c.shard AND x.workspace = c.workspace
           AND x.lifecycle = substr(c.rest, 1, instr(c.rest, '/') - 1)
           AND x.id = substr(c.rest, instr(c.rest, '/') + 1))
    WHEN '$batch' THEN NOT EXISTS (
        SELECT 1 FROM holdfast_batch AS x
         WHERE x.shard = c.shard AND x.workspace = c.workspace AND x.id = c.rest)
    ELSE c.name NOT IN ('deleted', 'expired') AND NOT EXISTS (
        SELECT 1 FROM holdfast_scope AS x
         WHERE x.shard = c.shard AND x.workspace = c.workspace
           AND x.kind = substr(c.rest, 1, instr(c.rest, '/') - 1)
           AND x.id = substr(c.rest, instr(c.rest, '/') + 1)) END;
    SELECT h.shard, h.workspace, h.stream, count(*) AS events, max(h.version) AS last, h.name,
           substr(h.stream, 1, instr(h.stream, '/') - 1) AS prefix,
           substr(h.stream, instr(h.stream, '/') + 1) AS rest
      FROM holdfast_history AS h
     WHERE (h.shard, h.workspace, h.stream) > (:shard, :workspace, :stream)
       AND (substr(h.stream, 1, 8) = '$entity/' OR substr(h.stream, 1, 7) = '$scope/'
            OR substr(h.stream, 1, 7) = '$batch/')
     GROUP BY h.shard, h.workspace, h.stream
     ORDER BY h.shard, h.workspace, h.stream}
