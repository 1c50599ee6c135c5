-- Schedules the next check of a batch: after a delay or, with a negative delay, only when
-- the batch changes. A change that happened meanwhile is not lost: the version then
-- differs, and a batch that may be finished stays due.
WITH {members}, moved AS (
    UPDATE {schema}.batch b
       SET due_at = CASE WHEN m.delay >= 0 THEN {now} + m.delay::float8 * interval '1 ms' END, error = coalesce(m.error, b.error)
      FROM m
     WHERE b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch AND b.version = m.version
       AND (m.delay >= 0 OR CASE WHEN b.cancel_requested THEN b.dirty > 0 AND b.waiting = 0 AND b.running = 0 AND b.succeeded = b.accepted
                                 ELSE NOT b.sealed OR b.next < b.items OR b.waiting > 0 OR b.running > 0 OR b.dirty > 0 END)
    RETURNING m.member
)
{include store/select_applied moved}
