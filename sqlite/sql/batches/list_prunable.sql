-- Lists batches whose items are past their retention, in all workspaces.
SELECT b.workspace, b.id
  FROM holdfast_batch AS b INDEXED BY holdfast_batch_prune
 WHERE b.shard = :shard AND b.prune_at IS NOT NULL AND b.prune_at <= {now} AND (:workspace = '' OR b.workspace = :workspace)
 ORDER BY b.prune_at
 LIMIT :limit
