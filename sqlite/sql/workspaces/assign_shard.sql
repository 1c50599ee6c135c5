-- Assigns a shard to a workspace, or returns the one that it has.
-- do
INSERT INTO holdfast_workspace (name, shard, created_at)
SELECT :workspace, :proposed, {now} WHERE true
ON CONFLICT (name) DO NOTHING
RETURNING shard
-- else
SELECT w.shard FROM holdfast_workspace AS w WHERE w.name = :workspace
