-- The sum of all registries' revisions: it is another when something was declared
-- anywhere.
-- ?1 shard, ?2 workspace, neither looked at
-- do
SELECT coalesce(sum(g.revision), 0)
  FROM holdfast_registry AS g
 WHERE ?1 IS NOT NULL AND ?2 IS NOT NULL
