-- Batches to be looked at, the longest due first.
-- $1 shard, $2 workspace ('' for all), $3 limit
SELECT b.workspace, b.id, b.version, b.cancel_requested
  FROM {schema}.batch b
 WHERE b.shard = $1::smallint AND ($2::text = '' OR b.workspace = $2) AND b.due_at IS NOT NULL AND b.due_at <= (SELECT {now})
 ORDER BY b.due_at
 LIMIT $3::bigint
