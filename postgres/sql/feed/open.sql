-- Makes the row that counts a workspace's feed, if there is none.
INSERT INTO {schema}.sequence (shard, workspace, last)
SELECT :shard, :workspace, 0
ON CONFLICT (shard, workspace) DO NOTHING
