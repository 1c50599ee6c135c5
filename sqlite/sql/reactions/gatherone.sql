-- There is one writer, so there is nothing to gather.
SELECT 1 WHERE :shard IS NULL AND :workspace IS NULL AND :reaction IS NULL
