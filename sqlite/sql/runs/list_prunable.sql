-- Lists runs past their retention, in all workspaces.
SELECT r.workspace, r.id
  FROM holdfast_run AS r INDEXED BY holdfast_run_prune
 WHERE r.shard = :shard AND r.prune_at IS NOT NULL AND r.prune_at <= {now} AND (:workspace = '' OR r.workspace = :workspace)
 ORDER BY r.prune_at
 LIMIT :limit
