-- Returns the last assigned position of a workspace's feed, 0 for none.
SELECT coalesce((SELECT q.last FROM {schema}.sequence AS q WHERE q.shard = :shard AND q.workspace = :workspace), 0)
