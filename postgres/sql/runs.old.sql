-- Runs whose time is over, in all workspaces.
-- $1 shard, $2 workspace ('' for all), $3 limit
SELECT r.workspace, r.id
  FROM {schema}.run r
 WHERE r.shard = $1::smallint AND r.prune_at <= (SELECT {now}) AND ($2::text = '' OR r.workspace = $2)
 ORDER BY r.prune_at
 LIMIT $3::bigint
