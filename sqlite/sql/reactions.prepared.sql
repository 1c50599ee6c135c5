-- There is one writer, so no reaction waits for anybody.
-- ?1 shard, ?2 workspace, ?3 reaction, ?4 what it waited for
-- do
SELECT r.waits FROM holdfast_reaction AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.name = ?3 AND r.state = 'waiting' AND ?4 IS NOT NULL
