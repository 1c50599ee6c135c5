-- Gives a workspace its shard, or tells the one that it has.
-- ?2 workspace, ?4 shard proposed
-- do
INSERT INTO holdfast_workspace (name, shard, created_at)
SELECT ?2, ?4, {now} WHERE true
ON CONFLICT (name) DO NOTHING
RETURNING shard
-- else
SELECT w.shard FROM holdfast_workspace AS w WHERE w.name = ?2
