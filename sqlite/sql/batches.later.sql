-- Has a batch that was looked at looked at again after a while, or, with a negative
-- delay, only when something happens to it. What happened meanwhile is not overlooked:
-- the version tells, and a batch that might be at its end stays due.
-- ?1 shard, ?2 workspace, ?3 command, ?4 batch, ?5 version, ?6 delay in ms, ?7 error
-- do
UPDATE holdfast_batch AS b
   SET due_at = CASE WHEN ?6 >= 0 THEN {now} + ?6 END, error = coalesce(?7, b.error)
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4 AND b.version = ?5
   AND (?6 >= 0 OR CASE WHEN b.cancel_requested THEN b.dirty > 0 AND b.waiting = 0 AND b.running = 0 AND b.succeeded = b.accepted
                        ELSE NOT b.sealed OR b.next < b.items OR b.waiting > 0 OR b.running > 0 OR b.dirty > 0 END)
RETURNING 1
-- else
SELECT 1
