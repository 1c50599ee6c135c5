-- Scopes that have ended, and tombstones that may go, in all workspaces.
-- $1 shard, $2 workspace ('' for all), $3 limit
SELECT s.workspace, s.kind, s.id, s.version, s.state IS NOT NULL
  FROM {schema}.scope s
 WHERE s.shard = $1::smallint AND s.expires_at <= (SELECT {now}) AND ($2::text = '' OR s.workspace = $2)
 ORDER BY s.expires_at
 LIMIT $3::bigint
