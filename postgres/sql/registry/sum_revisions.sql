-- Returns the sum of the revisions of all registries, which changes with every declaration
-- anywhere.
SELECT coalesce(pg_catalog.sum(g.revision), 0)::bigint
  FROM {schema}.registry g
 WHERE :shard IS NOT NULL AND :workspace IS NOT NULL
