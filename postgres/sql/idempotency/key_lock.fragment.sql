-- The advisory lock on a key that has no row.
pg_catalog.hashtextextended('request/' || m.shard::text || '/' || m.workspace || '/' || m.key, 0)
