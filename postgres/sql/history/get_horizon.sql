-- Returns the current snapshot, from which history.list_new can continue.
-- :after is for SQLite
SELECT pg_catalog.pg_current_snapshot()::text, 0::bigint, '{}' WHERE :shard >= 0 AND :workspace IS NOT NULL AND :after IS NOT NULL
