-- Runs whose time is over, in all workspaces.
-- ?1 shard, ?2 workspace ('' for all), ?3 limit
-- do
SELECT r.workspace, r.id
  FROM holdfast_run AS r INDEXED BY holdfast_run_prune
 WHERE r.shard = ?1 AND r.prune_at IS NOT NULL AND r.prune_at <= {now} AND (?2 = '' OR r.workspace = ?2)
 ORDER BY r.prune_at
 LIMIT +?3
