-- Records why the cleanup of an item failed, ends its lease, and schedules a retry. Recording the same end twice changes nothing.
-- do
UPDATE holdfast_item AS i
   SET sweep_at = CASE WHEN i.sweeps = :sweeps THEN {now} + :delay ELSE i.sweep_at END, sweeps = :sweeps + 1
 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = :key AND i.dirty = :dirty
   AND (i.sweeps = :sweeps AND i.sweep_at > {now} OR i.sweeps = :sweeps + 1)
RETURNING 1
-- then
UPDATE holdfast_batch AS b
   SET error = CASE WHEN b.status IN ('CANCELLED', 'COMPLETED') THEN b.error ELSE :error END
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
-- else
SELECT 1
