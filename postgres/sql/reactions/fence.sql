-- Prevents new rows of a reaction until the transaction ends, and waits for those that are
-- being inserted.
SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('follow/' || :shard::text || '/' || :workspace || '/' || :reaction, 0))::text
