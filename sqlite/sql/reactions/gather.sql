-- There is one writer, so a mark is noted where it belongs when it is made, and
-- there is nothing to gather.
SELECT 0, '', '', '', 0, 0 WHERE :shard IS NULL AND :workspace IS NULL AND :reactions IS NULL AND :limit IS NULL
