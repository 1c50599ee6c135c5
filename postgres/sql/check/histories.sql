-- Finds histories of an entity, a scope or a batch that does not exist, one page of histories
-- at a time, and returns the last history of the page too. A deleted scope stays for a day as
-- a tombstone; after that its history may be all that is left. The name of a history is a
-- kind, a name without a slash, and the rest.
{include check/page j.stream, ''::text, -1::bigint, j.events, j.last; c.stream;
    CASE c.prefix WHEN '$entity' THEN NOT EXISTS (
        SELECT 1 FROM {schema}.entity x
         WHERE x.shard = c.shard AND x.workspace = c.workspace
           AND x.lifecycle = pg_catalog.split_part(c.rest, '/', 1)
           AND x.id = pg_catalog.substr(c.rest, pg_catalog.strpos(c.rest, '/') + 1))
    WHEN '$batch' THEN NOT EXISTS (
        SELECT 1 FROM {schema}.batch x
         WHERE x.shard = c.shard AND x.workspace = c.workspace AND x.id = c.rest)
    ELSE c.name NOT IN ('deleted', 'expired') AND NOT EXISTS (
        SELECT 1 FROM {schema}.scope x
         WHERE x.shard = c.shard AND x.workspace = c.workspace
           AND x.kind = pg_catalog.split_part(c.rest, '/', 1)
           AND x.id = pg_catalog.substr(c.rest, pg_catalog.strpos(c.rest, '/') + 1)) END;
    SELECT h.shard, h.workspace, h.stream, pg_catalog.count(*) AS events, pg_catalog.max(h.version) AS last, (pg_catalog.array_agg(h.name ORDER BY h.version DESC))[1] AS name,
           pg_catalog.split_part(h.stream, '/', 1) AS prefix,
           pg_catalog.substr(h.stream, pg_catalog.strpos(h.stream, '/') + 1) AS rest
      FROM {schema}.history h
     WHERE (h.shard, h.workspace, h.stream) > (:shard, :workspace, :stream)
       AND (pg_catalog.left(h.stream, 8) = '$entity/' OR pg_catalog.left(h.stream, 7) = '$scope/'
            OR pg_catalog.left(h.stream, 7) = '$batch/')
     GROUP BY h.shard, h.workspace, h.stream
     ORDER BY h.shard, h.workspace, h.stream}
