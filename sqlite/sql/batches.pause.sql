-- Pauses a batch that has nothing to do but an item that its wallet cannot pay.
-- ?1 shard, ?2 workspace, ?3 command, ?4 batch
-- do
UPDATE holdfast_batch AS b
   SET status = 'PAUSED', need = i.cost, version = b.version + 1, updated_at = {now}
  FROM holdfast_item AS i, holdfast_wallet AS w
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
   AND i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.n = b.next + 1
   AND w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
   AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested AND b.running = 0 AND b.waiting = 0
   AND i.cost > w.balance AND i.cost > 0 AND NOT w.negative
RETURNING 1
-- then
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$batch/' || ?4, b.version, 'paused', json_object('need', b.need), NULL, NULL, NULL, b.updated_at
  FROM holdfast_batch AS b
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
-- else
SELECT 1
