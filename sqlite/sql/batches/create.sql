-- Creates a batch with its first items, unless it exists or its wallet does not.
-- do
INSERT INTO holdfast_batch
    (shard, workspace, id, wallet, handler, status, parallel, attempts, allowed, timeout, undo, artifacts, sealed, cancel_requested,
     items, next, waiting, running, succeeded, accepted, failed, cancelled, dirty, charged, refunded, need, version,
     due_at, served_at, created_at, updated_at, about, keep)
SELECT :shard, :workspace, :batch, :wallet, :handler, 'PENDING', :parallel, :attempts, :allowed, :timeout, :undo, :artifacts, :sealed, 0, json_array_length(:items), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
       CASE WHEN :sealed AND json_array_length(:items) = 0 THEN t.now END, t.now, t.now, t.now, :about, nullif(:keep, 0)
  FROM (SELECT {now} AS now) AS t
 WHERE EXISTS (SELECT 1 FROM holdfast_wallet AS w WHERE w.shard = :shard AND w.workspace = :workspace AND w.id = :wallet)
ON CONFLICT (shard, workspace, id) DO NOTHING
RETURNING 'made'
-- also
INSERT INTO holdfast_item (shard, workspace, batch, key, n, cost, charged, state, input, failures, epoch, deaths, sweeps, dirty, updated_at)
SELECT b.shard, b.workspace, b.id, x.value ->> 0, x.key + 1, x.value ->> 1, 0, 'pending', x.value -> 2, 0, 0, 0, 0, 0, b.created_at
  FROM holdfast_batch AS b JOIN json_each(:items) AS x
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.id = :batch
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$batch/' || :batch, 0, 'created', json_object('items', b.items), NULL, NULL, NULL, b.created_at
  {include batches/by_id}
-- else
SELECT CASE WHEN EXISTS (SELECT 1 {include batches/by_id}) THEN 'there' ELSE 'missing' END
