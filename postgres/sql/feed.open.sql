-- Makes the row that counts a workspace's feed, if there is none.
-- $1 shard, $2 workspace
INSERT INTO {schema}.sequence (shard, workspace, last)
SELECT $1::smallint, $2::text, 0
ON CONFLICT (shard, workspace) DO NOTHING
