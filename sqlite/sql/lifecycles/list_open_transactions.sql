-- Lists the transactions in flight: none, because SQLite has one writer and all earlier
-- transactions have ended.
SELECT '' WHERE :shard IS NULL AND :workspace IS NULL AND :list IS NULL
