-- The shard of a workspace that has one.
-- ?2 workspace
-- do
SELECT w.shard FROM holdfast_workspace AS w WHERE w.name = ?2
