-- The statement that numbers moves the watermarks too, so there is nothing to do.
SELECT 1 WHERE :shard IS NULL AND :workspace IS NULL AND :streams IS NULL
