-- The shards that workspaces live on, and how many on each.
-- do
SELECT w.shard, count(*) FROM holdfast_workspace AS w GROUP BY w.shard ORDER BY w.shard
