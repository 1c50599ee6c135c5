-- Records that the holder of a cancelled item has stopped working on it, so that the cleanup does not wait for the end of that lease.
-- do
UPDATE holdfast_item AS i
   SET late = {now}, sweep_at = CASE WHEN i.sweep_at = i.late THEN {now} ELSE i.sweep_at END
 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = :key
   AND i.state = 'cancelled' AND i.dirty AND i.epoch = :epoch + 1 AND i.late > {now}
RETURNING 1
-- else
SELECT 1
