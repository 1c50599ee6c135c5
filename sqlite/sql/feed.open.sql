-- Makes the row that counts a workspace's feed, if there is none.
-- ?1 shard, ?2 workspace
-- do
INSERT INTO holdfast_sequence (shard, workspace, last)
SELECT ?1, ?2, 0
 WHERE true
ON CONFLICT (shard, workspace) DO NOTHING
