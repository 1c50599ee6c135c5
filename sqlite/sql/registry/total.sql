-- The sum of all registries' revisions: it is another when something was declared anywhere.
SELECT coalesce(sum(g.revision), 0)
  FROM holdfast_registry AS g
 WHERE :shard IS NOT NULL AND :workspace IS NOT NULL
