-- Creates the counter row of a workspace's feed, if it does not exist.
INSERT INTO {schema}.sequence (shard, workspace, last)
SELECT :shard, :workspace, 0
ON CONFLICT (shard, workspace) DO NOTHING
