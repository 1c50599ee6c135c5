-- Pauses a batch whose only remaining work is an item that its wallet cannot pay for.
-- do
UPDATE holdfast_batch AS b
   SET status = 'PAUSED', need = i.cost, version = b.version + 1, updated_at = {now}
  FROM holdfast_item AS i, holdfast_wallet AS w
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
   AND i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.n = b.next + 1
   AND w.shard = b.shard AND w.workspace = b.workspace AND w.id = b.wallet
   AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested AND b.running = 0 AND b.waiting = 0
   AND i.cost > w.balance AND i.cost > 0 AND NOT w.negative
RETURNING 1
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$batch/' || :batch, b.version, 'paused', json_object('need', b.need), NULL, NULL, NULL, b.updated_at
  {include batches/by_id}
-- else
SELECT 1
