-- The shards that workspaces live on.
-- do
SELECT DISTINCT w.shard FROM holdfast_workspace AS w ORDER BY w.shard
