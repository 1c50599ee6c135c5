-- Does nothing: SQLite has one writer, so a reaction has no transactions to wait for.
SELECT r.waits FROM holdfast_reaction AS r
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.name = :reaction AND r.state = 'waiting'
