-- Lists batches that are due for a check, the longest due first.
SELECT b.workspace, b.id, b.version, b.cancel_requested
  FROM {schema}.batch b
 WHERE b.shard = :shard AND (:workspace = '' OR b.workspace = :workspace) AND b.due_at IS NOT NULL AND b.due_at <= (SELECT {now})
 ORDER BY b.due_at
 LIMIT :limit
