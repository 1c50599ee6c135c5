-- Finishes batches that have nothing left to do. A cancelled batch that is torn down
-- becomes CANCELLED; any other sealed batch becomes COMPLETED, which accepts the items
-- that were not decided.
WITH {members}, moved AS (
    UPDATE {schema}.batch b
       SET status = CASE WHEN b.cancel_requested THEN 'CANCELLED' ELSE 'COMPLETED' END,
           accepted = b.succeeded, error = NULL, due_at = NULL, prune_at = {now} + b.keep::float8 * interval '1 ms', version = b.version + 1, updated_at = {now}
      FROM m
     WHERE b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch AND b.waiting = 0 AND b.running = 0 AND b.dirty = 0
       AND CASE WHEN b.cancel_requested THEN b.status = 'CANCELLING' AND b.succeeded = b.accepted
                ELSE b.status IN ('PENDING', 'RUNNING', 'PAUSED') AND b.sealed AND b.next = b.items END
    RETURNING m.member, b.version, b.status, b.items, b.next, b.succeeded, b.failed, b.cancelled, b.charged, b.refunded, b.updated_at
), {include history/write_without_cause}
    SELECT m.shard, m.command, 0, m.workspace, '$batch/' || m.batch, moved.version, pg_catalog.lower(moved.status),
           pg_catalog.json_build_object('succeeded', moved.succeeded, 'failed', moved.failed, 'cancelled', moved.cancelled + moved.items - moved.next,
                             'charged', moved.charged, 'refunded', moved.refunded), moved.updated_at
      FROM m JOIN moved ON moved.member = m.member
    {due_notices}
{include store/select_applied moved}
