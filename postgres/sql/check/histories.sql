-- Finds histories of an entity, a scope or a batch that does not exist, one page of histories
-- at a time, and returns the last history of the page too. A deleted scope stays for a day as
-- a tombstone; after that its history may be all that is left, as of a bulk that was deleted. The name of a history is a
-- kind, a name without a slash, and the rest.
{include check/headless history; IN ('$entity', '$scope', '$batch');
    CASE c.prefix WHEN '$entity' THEN NOT EXISTS (
        SELECT 1 FROM {schema}.entity x
         WHERE x.shard = ANY (ARRAY[c.shard]) AND x.workspace = c.workspace
           AND x.lifecycle = pg_catalog.split_part(c.rest, '/', 1)
           AND x.id = pg_catalog.substr(c.rest, pg_catalog.strpos(c.rest, '/') + 1))
    WHEN '$batch' THEN NOT EXISTS (
        SELECT 1 FROM {schema}.batch x
         WHERE x.shard = ANY (ARRAY[c.shard]) AND x.workspace = c.workspace AND x.id = c.rest)
        AND (pg_catalog.left(c.rest, 6) <> '$bulk/'
             OR (SELECT h.name FROM {schema}.history h
                  WHERE h.shard = c.shard AND h.workspace = c.workspace AND h.stream = c.stream
                  ORDER BY h.version DESC
                  LIMIT 1) NOT IN ('completed', 'cancelled'))
    ELSE NOT EXISTS (
        SELECT 1 FROM {schema}.scope x
         WHERE x.shard = ANY (ARRAY[c.shard]) AND x.workspace = c.workspace
           AND x.kind = pg_catalog.split_part(c.rest, '/', 1)
           AND x.id = pg_catalog.substr(c.rest, pg_catalog.strpos(c.rest, '/') + 1))
        AND (SELECT h.name FROM {schema}.history h
              WHERE h.shard = c.shard AND h.workspace = c.workspace AND h.stream = c.stream
              ORDER BY h.version DESC
              LIMIT 1) NOT IN ('deleted', 'expired') END}
