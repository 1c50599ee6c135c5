-- Reactions that wait, or are removed but not gone, in all workspaces of a shard.
-- $1 shard, $2 workspace ('' for all), $3 limit
SELECT r.workspace, r.name, r.state
  FROM {schema}.reaction r
 WHERE r.shard = $1::smallint AND ($2::text = '' OR r.workspace = $2) AND r.state <> 'live'
 ORDER BY r.workspace, r.name
 LIMIT $3::bigint
