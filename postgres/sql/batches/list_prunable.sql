-- Lists batches whose items are past their retention, in all workspaces.
SELECT b.workspace, b.id
  FROM {schema}.batch b
 WHERE b.shard + 0 = :shard AND b.prune_at <= (SELECT {now}) AND (:workspace = '' OR b.workspace = :workspace)
 ORDER BY b.prune_at
 LIMIT :limit
