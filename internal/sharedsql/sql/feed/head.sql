-- The last position that was given in a workspace's feed, 0 for none.
SELECT coalesce((SELECT q.last FROM {schema}.sequence AS q WHERE q.shard = :shard AND q.workspace = :workspace), 0)
