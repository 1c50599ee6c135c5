-- Scopes that have ended, and tombstones that may go, in all workspaces.
-- ?1 shard, ?2 workspace ('' for all), ?3 limit
-- do
SELECT s.workspace, s.kind, s.id, s.version, s.state IS NOT NULL
  FROM holdfast_scope AS s INDEXED BY holdfast_scope_expires
 WHERE s.shard = ?1 AND s.expires_at IS NOT NULL AND s.expires_at <= {now} AND (?2 = '' OR s.workspace = ?2)
 ORDER BY s.expires_at
 LIMIT +?3
