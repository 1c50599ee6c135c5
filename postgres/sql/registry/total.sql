-- The sum of all registries' revisions: it is another when something was declared
-- anywhere.
SELECT coalesce(pg_catalog.sum(g.revision), 0)::bigint
  FROM {schema}.registry g
 WHERE :shard IS NOT NULL AND :workspace IS NOT NULL
