-- There is one writer: a transaction that writes has everything locked.
-- ?1 shard, ?2 workspace, ?3 command, ?4 run
-- do
SELECT 1 FROM holdfast_run AS r WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4
-- else
SELECT 1
