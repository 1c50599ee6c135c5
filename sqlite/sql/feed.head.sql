-- The last position that was given in a workspace's feed, 0 for none.
-- ?1 shard, ?2 workspace
-- do
SELECT coalesce((SELECT q.last FROM holdfast_sequence AS q WHERE q.shard = ?1 AND q.workspace = ?2), 0)
