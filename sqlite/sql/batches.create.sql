-- Makes a batch with its first items, unless there is one, or no wallet.
-- ?1 shard, ?2 workspace, ?3 command, ?4 batch, ?5 wallet, ?6 handler, ?7 parallel, ?8 attempts, ?9 deaths allowed, ?10 timeout in ms,
-- ?11 undo, ?12 artifacts, ?13 sealed, ?14 items, a JSON list of [key, cost, input]
-- do
INSERT INTO holdfast_batch
    (shard, workspace, id, wallet, handler, status, parallel, attempts, allowed, timeout, undo, artifacts, sealed, cancel_requested,
     items, next, waiting, running, succeeded, accepted, failed, cancelled, dirty, charged, refunded, need, version,
     due_at, served_at, created_at, updated_at)
SELECT ?1, ?2, ?4, ?5, ?6, 'PENDING', ?7, ?8, ?9, ?10, ?11, ?12, ?13, 0, json_array_length(?14), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
       CASE WHEN ?13 AND json_array_length(?14) = 0 THEN t.now END, t.now, t.now, t.now
  FROM (SELECT {now} AS now) AS t
 WHERE EXISTS (SELECT 1 FROM holdfast_wallet AS w WHERE w.shard = ?1 AND w.workspace = ?2 AND w.id = ?5)
ON CONFLICT (shard, workspace, id) DO NOTHING
RETURNING 'made'
-- also
INSERT INTO holdfast_item (shard, workspace, batch, key, n, cost, charged, state, input, failures, epoch, deaths, sweeps, dirty, updated_at)
SELECT b.shard, b.workspace, b.id, x.value ->> 0, x.key + 1, x.value ->> 1, 0, 'pending', x.value -> 2, 0, 0, 0, 0, 0, b.created_at
  FROM holdfast_batch AS b JOIN json_each(?14) AS x
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
-- then
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$batch/' || ?4, 0, 'created', json_object('items', b.items), NULL, NULL, NULL, b.created_at
  FROM holdfast_batch AS b
 WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4
-- else
SELECT CASE WHEN EXISTS (SELECT 1 FROM holdfast_batch AS b WHERE b.shard = ?1 AND b.workspace = ?2 AND b.id = ?4) THEN 'there' ELSE 'missing' END
