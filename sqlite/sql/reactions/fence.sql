-- Does nothing: SQLite has one writer, so the write lock keeps all others out.
SELECT '' WHERE :shard IS NOT NULL AND :workspace IS NOT NULL AND :reaction IS NOT NULL
