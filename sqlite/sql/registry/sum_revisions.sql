-- Returns the sum of the revisions of all registries, which changes with every declaration anywhere.
SELECT coalesce(sum(g.revision), 0)
  FROM holdfast_registry AS g
 WHERE :shard IS NOT NULL AND :workspace IS NOT NULL
