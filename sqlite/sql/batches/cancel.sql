-- Cancels a batch. A batch without any taken item has no charges and nothing to clean
-- up: it becomes CANCELLED at once. Any other batch is flagged, so that no new item
-- starts, and is torn down later.
-- do
UPDATE holdfast_batch AS b
   SET status = CASE WHEN b.next = 0 THEN 'CANCELLED' ELSE b.status END, cancel_requested = 1, version = b.version + 1, updated_at = {now},
       due_at = CASE WHEN b.next = 0 THEN NULL ELSE {now} END, prune_at = CASE WHEN b.next = 0 THEN {now} + b.keep END
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
   AND NOT b.cancel_requested AND b.status NOT IN ('CANCELLED', 'COMPLETED')
RETURNING 1
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$batch/' || :batch, b.version, CASE WHEN b.status = 'CANCELLED' THEN 'cancelled' ELSE 'cancelRequested' END,
       CASE WHEN b.status = 'CANCELLED' THEN json_object('cancelled', b.items, 'charged', 0, 'refunded', 0) ELSE '{}' END, NULL, NULL, :actor, b.updated_at
  {include batches/by_id}
-- else
SELECT 1
