-- Lists expired scopes, and tombstones that can be deleted, in all workspaces.
SELECT s.workspace, s.kind, s.id, s.version, s.state IS NOT NULL
  FROM {schema}.scope s
 WHERE s.shard = :shard AND s.expires_at <= (SELECT {now}) AND (:workspace = '' OR s.workspace = :workspace)
 ORDER BY s.expires_at
 LIMIT :limit
