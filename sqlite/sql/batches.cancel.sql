-- Cancels a batch. One of which nothing was ever taken has cost nothing and left nothing:
-- it is CANCELLED at once. Any other is marked, so that nothing of it starts any more,
-- and is torn down.
-- ?1 shard, ?2 workspace, ?3 command, ?4 batch
-- do
UPDATE holdfast_batch AS b
   SET status = CASE WHEN b.next = 0 THEN 'CANCELLED' ELSE b.status END, cancel_requested = 1, version = b.version + 1, updated_at = {now},
       due_at = CASE WHEN b.next = 0 THEN NULL ELSE {now} END
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
   AND NOT b.cancel_requested AND b.status NOT IN ('CANCELLED', 'COMPLETED')
RETURNING 1
-- then
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$batch/' || ?4, b.version, CASE WHEN b.status = 'CANCELLED' THEN 'cancelled' ELSE 'cancelRequested' END,
       CASE WHEN b.status = 'CANCELLED' THEN json_object('cancelled', b.items, 'charged', 0, 'refunded', 0) ELSE '{}' END, NULL, NULL, NULL, b.updated_at
  FROM holdfast_batch AS b
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
-- else
SELECT 1
