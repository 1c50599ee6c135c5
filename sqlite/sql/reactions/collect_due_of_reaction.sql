-- Does nothing: SQLite has one writer, so there is nothing to collect.
SELECT 1 WHERE :shard IS NULL AND :workspace IS NULL AND :reaction IS NULL
