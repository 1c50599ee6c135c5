-- There is one writer, so no reaction waits for anybody: all is as if it were over.
-- ?1 shard, ?2 workspace, ?3 reaction
-- do
SELECT 0, '["prepared"]' FROM holdfast_reaction AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.name = ?3 AND r.state <> 'live'
