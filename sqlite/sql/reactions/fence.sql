-- There is one writer: whoever has the lock keeps all others away.
SELECT '' WHERE :shard IS NOT NULL AND :workspace IS NOT NULL AND :reaction IS NOT NULL
