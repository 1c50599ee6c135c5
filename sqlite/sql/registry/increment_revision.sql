-- Increments the revision of a workspace's registry, which makes every command with the old one read the registry again.
INSERT INTO holdfast_registry AS g (shard, workspace, revision) VALUES (:shard, :workspace, 1)
ON CONFLICT (shard, workspace) DO UPDATE SET revision = g.revision + 1
RETURNING revision
