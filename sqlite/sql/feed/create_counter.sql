-- Creates the counter row of a workspace's feed, if it does not exist.
INSERT INTO holdfast_sequence (shard, workspace, last)
SELECT :shard, :workspace, 0
 WHERE true
ON CONFLICT (shard, workspace) DO NOTHING
