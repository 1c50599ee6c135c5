-- Resumes a PAUSED batch. A batch that still lacks funds is paused again.
-- do
UPDATE holdfast_batch AS b
   SET status = CASE WHEN b.next = 0 THEN 'PENDING' ELSE 'RUNNING' END, need = 0, version = b.version + 1, updated_at = {now}
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch AND b.status = 'PAUSED' AND NOT b.cancel_requested
RETURNING 1
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$batch/' || :batch, b.version, 'resumed', '{}', NULL, NULL, NULL, b.updated_at
  {include batches/by_id}
-- else
SELECT 1
