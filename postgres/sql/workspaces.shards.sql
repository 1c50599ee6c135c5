-- The shards that workspaces live on.
SELECT DISTINCT w.shard
  FROM {schema}.workspace w
 WHERE $1::smallint IS NOT NULL AND $2::text IS NOT NULL
 ORDER BY w.shard
