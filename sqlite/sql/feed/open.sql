-- Makes the row that counts a workspace's feed, if there is none.
INSERT INTO holdfast_sequence (shard, workspace, last)
SELECT :shard, :workspace, 0
 WHERE true
ON CONFLICT (shard, workspace) DO NOTHING
