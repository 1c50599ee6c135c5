-- Lists expired scopes, and tombstones that can be deleted, in all workspaces.
SELECT s.workspace, s.kind, s.id, s.version, s.state IS NOT NULL
  FROM holdfast_scope AS s INDEXED BY holdfast_scope_expires
 WHERE s.shard = :shard AND s.expires_at IS NOT NULL AND s.expires_at <= {now} AND (:workspace = '' OR s.workspace = :workspace)
 ORDER BY s.expires_at
 LIMIT :limit
