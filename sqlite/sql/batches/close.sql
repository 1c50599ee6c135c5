-- Finishes a batch that has nothing left to do. A cancelled batch that is torn down
-- becomes CANCELLED; any other sealed batch becomes COMPLETED, which accepts the items
-- that were not decided.
-- do
UPDATE holdfast_batch AS b
   SET status = CASE WHEN b.cancel_requested THEN 'CANCELLED' ELSE 'COMPLETED' END,
       accepted = b.succeeded, error = NULL, due_at = NULL, prune_at = {now} + b.keep, version = b.version + 1, updated_at = {now}
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch AND b.waiting = 0 AND b.running = 0 AND b.dirty = 0
   AND CASE WHEN b.cancel_requested THEN b.status = 'CANCELLING' AND b.succeeded = b.accepted
            ELSE b.status IN ('PENDING', 'RUNNING', 'PAUSED') AND b.sealed AND b.next = b.items END
RETURNING 1
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$batch/' || :batch, b.version, lower(b.status),
       json_object('succeeded', b.succeeded, 'failed', b.failed, 'cancelled', b.cancelled + b.items - b.next, 'charged', b.charged, 'refunded', b.refunded),
       NULL, NULL, NULL, b.updated_at
  {include batches/by_id}
-- else
SELECT 1
