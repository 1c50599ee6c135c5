-- Returns that nothing is in flight: SQLite has one writer, so a reaction has no transactions to wait for.
SELECT 0, '["prepared"]' FROM holdfast_reaction AS r
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.name = :reaction AND r.state <> 'live'
