-- The sum of all registries' revisions: it is another when something was declared
-- anywhere.
-- $1 shard, $2 workspace, neither looked at
SELECT coalesce(pg_catalog.sum(g.revision), 0)::bigint
  FROM {schema}.registry g
 WHERE $1::smallint IS NOT NULL AND $2::text IS NOT NULL
