-- There is one writer: a transaction that writes has everything locked.
-- ?1 shard, ?2 workspace, ?3 command, ?4 batch
-- do
SELECT 1 FROM holdfast_batch AS b WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
-- else
SELECT 1
