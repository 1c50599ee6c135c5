-- Records why the cleanup of an item failed, and schedules a retry.
-- do
UPDATE holdfast_item AS i
   SET sweep_at = {now} + :delay
 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = :key AND i.sweeps = :sweeps AND i.dirty = :dirty
RETURNING 1
-- then
UPDATE holdfast_batch AS b
   SET error = CASE WHEN b.status IN ('CANCELLED', 'COMPLETED') THEN b.error ELSE :error END
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
-- else
SELECT 1
