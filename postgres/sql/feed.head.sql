-- The last position that was given in a workspace's feed, 0 for none.
-- $1 shard, $2 workspace
SELECT coalesce((SELECT q.last FROM {schema}.sequence q WHERE q.shard = $1::smallint AND q.workspace = $2::text), 0)
