-- Lists the shards that have workspaces, and how many each has.
SELECT w.shard, {pg}count(*)
  FROM {schema}.workspace AS w
 WHERE :shard IS NOT NULL AND :workspace IS NOT NULL
 GROUP BY w.shard
 ORDER BY w.shard
