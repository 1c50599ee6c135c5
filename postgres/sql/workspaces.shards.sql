-- The shards that workspaces live on, and how many on each.
SELECT w.shard, pg_catalog.count(*)
  FROM {schema}.workspace w
 WHERE $1::smallint IS NOT NULL AND $2::text IS NOT NULL
 GROUP BY w.shard
 ORDER BY w.shard
