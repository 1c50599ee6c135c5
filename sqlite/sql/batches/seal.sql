-- Seals a batch: no more items can be added. A batch with nothing left to do becomes due.
-- do
UPDATE holdfast_batch AS b
   SET sealed = 1, version = b.version + 1, updated_at = {now},
       due_at = CASE WHEN b.next = b.items AND b.waiting = 0 AND b.running = 0 AND b.dirty = 0 THEN {now} ELSE b.due_at END
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
   AND NOT b.sealed AND NOT b.cancel_requested AND b.status NOT IN ('CANCELLED', 'COMPLETED')
RETURNING 1
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$batch/' || :batch, b.version, 'sealed', json_object('items', b.items), NULL, NULL, :actor, b.updated_at
  {include batches/by_id}
-- else
SELECT 1
