-- Does nothing: SQLite has one writer, so a due notice is recorded on its row when it is
-- made, and there is nothing to collect.
SELECT 0, '', '', '', 0, 0 WHERE :shard IS NULL AND :workspace IS NULL AND :reactions IS NULL AND :limit IS NULL
