-- There is one writer: whoever has the lock keeps all others away.
-- ?1 shard, ?2 workspace, not looked at, ?3 reaction
-- do
SELECT '' WHERE ?1 IS NOT NULL AND ?2 IS NOT NULL AND ?3 IS NOT NULL
