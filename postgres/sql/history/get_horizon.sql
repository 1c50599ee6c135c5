-- Returns the current snapshot, with the number of transactions that have begun since the last one that has ended, from which history.list_new can continue.
-- :after is for SQLite
SELECT s::text || ':' || pg_catalog.age((pg_catalog.pg_snapshot_xmax(s)::text::bigint & 4294967295)::text::xid), 0::bigint, '{}'
  FROM pg_catalog.pg_current_snapshot() AS s
 WHERE :shard >= 0 AND :workspace IS NOT NULL AND :after IS NOT NULL
