-- The workspaces that a lifecycle is registered in.
-- $1 shard, $2 workspace ('' for all), $3 lifecycle
SELECT l.workspace
  FROM {schema}.lifecycle l
 WHERE l.shard = $1::smallint AND ($2::text = '' OR l.workspace = $2::text) AND l.name = $3::text
 ORDER BY l.workspace
