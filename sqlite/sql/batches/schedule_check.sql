-- Schedules the next check of a batch: after a delay or, with a negative delay, only when the batch changes.
-- do
UPDATE holdfast_batch AS b
   SET due_at = CASE WHEN :delay >= 0 THEN {now} + :delay END, error = coalesce(:error, b.error)
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch AND b.version = :version
   AND (:delay >= 0 OR CASE WHEN b.cancel_requested THEN b.dirty > 0 AND b.waiting = 0 AND b.running = 0 AND b.succeeded = b.accepted
                        ELSE NOT b.sealed OR b.next < b.items OR b.waiting > 0 OR b.running > 0 OR b.dirty > 0 END)
RETURNING 1
-- else
SELECT 1
