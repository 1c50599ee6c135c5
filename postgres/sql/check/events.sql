-- Finds events of a stream that has no row, one page of streams at a time, and returns the
-- last stream of the page too. Void events belong to no stream.
{include check/headless event; <> '$void';
    NOT EXISTS (SELECT 1 FROM {schema}.stream s
                 WHERE s.shard = ANY (ARRAY[c.shard]) AND s.workspace = c.workspace AND s.name = c.stream)}
