-- Resumes a batch that is PAUSED. One that still lacks funds is paused again.
-- ?1 shard, ?2 workspace, ?3 command, ?4 batch
-- do
UPDATE holdfast_batch AS b
   SET status = CASE WHEN b.next = 0 THEN 'PENDING' ELSE 'RUNNING' END, need = 0, version = b.version + 1, updated_at = {now}
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4 AND b.status = 'PAUSED' AND NOT b.cancel_requested
RETURNING 1
-- then
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$batch/' || ?4, b.version, 'resumed', '{}', NULL, NULL, NULL, b.updated_at
  FROM holdfast_batch AS b
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
-- else
SELECT 1
