-- Notes why an item could not be cleaned up after, and has it tried again later.
-- ?1 shard, ?2 workspace, ?3 command, ?4 batch, ?5 key, ?6 sweeps, ?7 whether it was dirty, ?8 delay in ms, ?9 error
-- do
UPDATE holdfast_item AS i
   SET sweep_at = {now} + ?8
 WHERE i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?4 AND i.key = ?5 AND i.sweeps = ?6 AND i.dirty = ?7
RETURNING 1
-- then
UPDATE holdfast_batch AS b
   SET error = CASE WHEN b.status IN ('CANCELLED', 'COMPLETED') THEN b.error ELSE ?9 END
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
-- else
SELECT 1
