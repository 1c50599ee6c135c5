-- Raises the revision of a workspace's registry, and with it makes every command that goes by the old one read it again.
INSERT INTO holdfast_registry AS g (shard, workspace, revision) VALUES (:shard, :workspace, 1)
ON CONFLICT (shard, workspace) DO UPDATE SET revision = g.revision + 1
RETURNING revision
