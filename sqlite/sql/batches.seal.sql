-- Seals a batch: nothing more is added. One that has nothing left to do is looked at.
-- ?1 shard, ?2 workspace, ?3 command, ?4 batch
-- do
UPDATE holdfast_batch AS b
   SET sealed = 1, version = b.version + 1, updated_at = {now},
       due_at = CASE WHEN b.next = b.items AND b.waiting = 0 AND b.running = 0 AND b.dirty = 0 THEN {now} ELSE b.due_at END
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
   AND NOT b.sealed AND NOT b.cancel_requested AND b.status NOT IN ('CANCELLED', 'COMPLETED')
RETURNING 1
-- then
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$batch/' || ?4, b.version, 'sealed', json_object('items', b.items), NULL, NULL, NULL, b.updated_at
  FROM holdfast_batch AS b
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
-- else
SELECT 1
