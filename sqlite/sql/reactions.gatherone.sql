-- There is one writer, so there is nothing to gather.
-- ?1 shard, ?2 workspace, ?3 reaction
-- do
SELECT 1 WHERE ?1 IS NULL AND ?2 IS NULL AND ?3 IS NULL
