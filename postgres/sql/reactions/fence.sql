-- Keeps new rows of a reaction away until the transaction ends, and waits for
-- those that are being made.
SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('follow/' || :shard::text || '/' || :workspace || '/' || :reaction, 0))::text
