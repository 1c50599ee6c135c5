-- Finds events of a stream that has no row, one page of streams at a time, and returns the
-- last stream of the page too. Void events belong to no stream.
{include check/page j.stream, ''::text, -1::bigint, j.events, j.last; c.stream;
    NOT EXISTS (SELECT 1 FROM {schema}.stream s
                 WHERE s.shard = ANY (ARRAY[c.shard]) AND s.workspace = c.workspace AND s.name = c.stream);
    SELECT e.shard, e.workspace, e.stream, pg_catalog.count(*) AS events, pg_catalog.max(e.version) AS last
      FROM {schema}.event e
     WHERE (e.shard, e.workspace, e.stream) > (:shard, :workspace, :stream)
       AND pg_catalog.left(e.stream, 6) <> '$void/'
     GROUP BY e.shard, e.workspace, e.stream
     ORDER BY e.shard, e.workspace, e.stream}
