-- Deletes a tombstone whose time is over, and raises the floor of its kind above it, so
-- that its versions are not used again.
-- ?1 shard, ?2 workspace, ?3 command, ?4 kind, ?5 scope
-- do
DELETE FROM holdfast_scope AS s
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.kind = ?4 AND s.id = ?5 AND s.state IS NULL AND s.expires_at <= {now}
RETURNING version
-- then
INSERT INTO holdfast_scope_floor AS f (shard, workspace, kind, version)
SELECT ?1, ?2, ?4, :did1 + 1 WHERE true
ON CONFLICT (shard, workspace, kind) DO UPDATE SET version = max(f.version, excluded.version)
-- else
SELECT -1
