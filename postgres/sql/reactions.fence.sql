-- Keeps new rows of a reaction away until the transaction ends, and waits for
-- those that are being made.
-- $1 shard, $2 workspace, $3 reaction
SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('follow/' || $1::smallint::text || '/' || $2::text || '/' || $3::text, 0))::text
