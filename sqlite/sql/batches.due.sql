-- Batches to be looked at, the longest due first.
-- ?1 shard, ?2 workspace ('' for all), ?3 limit
-- do
SELECT b.workspace, b.id, b.version, b.cancel_requested
  FROM holdfast_batch AS b
 WHERE b.shard = ?1 AND (?2 = '' OR b.workspace = ?2) AND b.due_at IS NOT NULL AND b.due_at <= {now}
 ORDER BY b.due_at
 LIMIT +?3
