-- Takes items of a workspace to clean up, the longest due first, and leases them for the cleanup. An item is undone once no
-- holder can still be working: until then, any node can clean up.
-- A take makes sweeps the next odd number; a holder that gives the cleanup back makes it even.
-- :kind 'worker' to take only items that workers undo
-- look
SELECT 1 FROM holdfast_item AS i INDEXED BY holdfast_item_turn
 WHERE i.shard = :shard AND i.workspace = :workspace AND i.sweep_at IS NOT NULL AND i.sweep_at <= {now}
 LIMIT 1
-- do
UPDATE holdfast_item AS i
   SET sweep_at = {now} + :lease, sweeps = i.sweeps + 2 - i.sweeps % 2
 WHERE i.shard = :shard AND i.workspace = :workspace AND (i.workspace, i.batch, i.key) IN (
       SELECT d.workspace, d.batch, d.key
         FROM holdfast_item AS d INDEXED BY holdfast_item_turn CROSS JOIN holdfast_batch AS b ON b.shard = d.shard AND b.workspace = d.workspace AND b.id = d.batch
        WHERE d.shard = :shard AND d.workspace = :workspace AND d.sweep_at IS NOT NULL AND d.sweep_at <= {now}
          AND CASE WHEN NOT b.undo OR NOT d.dirty OR coalesce(d.late > {now}, 0) THEN :kind = ''
                   WHEN b.handler IN (SELECT h.value FROM json_each(:handlers) AS h) THEN
                        :kind = '' OR EXISTS (SELECT 1 FROM holdfast_handler AS r WHERE r.shard = d.shard AND r.workspace = d.workspace AND r.name = b.handler AND r.kind = :kind)
                   ELSE :urls = 1 AND EXISTS (SELECT 1 FROM holdfast_handler AS r WHERE r.shard = d.shard AND r.workspace = d.workspace AND r.name = b.handler AND r.kind = 'http') END
          AND (NOT b.artifacts OR :artifacts = 1)
        ORDER BY d.sweep_at
        LIMIT :limit)
RETURNING workspace, batch, key, sweeps, state, epoch, input, coalesce(output, ''), dirty, late IS NOT NULL AND late > {now},
          (SELECT b.handler FROM holdfast_batch AS b WHERE b.shard = holdfast_item.shard AND b.workspace = holdfast_item.workspace AND b.id = batch),
          (SELECT b.undo FROM holdfast_batch AS b WHERE b.shard = holdfast_item.shard AND b.workspace = holdfast_item.workspace AND b.id = batch),
          (SELECT b.artifacts FROM holdfast_batch AS b WHERE b.shard = holdfast_item.shard AND b.workspace = holdfast_item.workspace AND b.id = batch),
          sweep_at
