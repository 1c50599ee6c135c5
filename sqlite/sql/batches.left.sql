-- Notes that who held an item when it was cancelled is not at work on it any more, so that
-- nobody waits for the end of that hold.
-- ?1 shard, ?2 workspace, ?3 command, ?4 batch, ?5 key, ?6 epoch of the hold that was ended
-- do
UPDATE holdfast_item AS i
   SET late = {now}, sweep_at = CASE WHEN i.sweep_at = i.late THEN {now} ELSE i.sweep_at END
 WHERE i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?4 AND i.key = ?5
   AND i.state = 'cancelled' AND i.dirty AND i.epoch = ?6 + 1 AND i.late > {now}
RETURNING 1
-- else
SELECT 1
