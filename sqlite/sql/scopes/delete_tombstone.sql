-- Deletes an expired tombstone, and raises the version floor of its kind above it, so that
-- its versions are not reused.
-- do
DELETE FROM holdfast_scope AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope AND s.state IS NULL AND s.expires_at <= {now}
RETURNING version
-- then
INSERT INTO holdfast_scope_floor AS f (shard, workspace, kind, version)
SELECT :shard, :workspace, :kind, :did1 + 1 WHERE true
ON CONFLICT (shard, workspace, kind) DO UPDATE SET version = max(f.version, excluded.version)
-- else
SELECT -1
