-- The shards that workspaces live on, and how many on each.
SELECT w.shard, {pg}count(*)
  FROM {schema}.workspace AS w
 WHERE :shard IS NOT NULL AND :workspace IS NOT NULL
 GROUP BY w.shard
 ORDER BY w.shard
