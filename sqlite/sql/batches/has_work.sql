WHEN 'held item' THEN ( -- in batches with running items
     SELECT max(min(i.until) - {now}, 0)
       FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
       JOIN holdfast_item AS i INDEXED BY holdfast_item_held ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id
      WHERE b.shard = t.value AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.running > 0
        AND i.holder IS NOT NULL AND i.until <= {now} + :soon)
WHEN 'batch' THEN (
     SELECT 0 FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
      WHERE b.shard = t.value AND b.handler = q.value ->> 1 AND b.status NOT IN ('CANCELLED', 'COMPLETED')
        AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested AND b.running < b.parallel AND (b.next < b.items OR b.waiting > 0) LIMIT 1)
WHEN 'maintenance' THEN (
     SELECT 0 FROM holdfast_batch AS b INDEXED BY holdfast_batch_due WHERE b.shard = t.value AND b.due_at IS NOT NULL AND b.due_at <= {now} LIMIT 1)
WHEN 'old batch' THEN (
     SELECT 0 FROM holdfast_batch AS b INDEXED BY holdfast_batch_prune WHERE b.shard = t.value AND b.prune_at IS NOT NULL AND b.prune_at <= {now} LIMIT 1)
WHEN 'cleaning' THEN (
     SELECT 0 FROM holdfast_item AS i INDEXED BY holdfast_item_sweep WHERE i.shard = t.value AND i.sweep_at IS NOT NULL AND i.sweep_at <= {now} LIMIT 1)
WHEN 'paused batch' THEN (
     SELECT 0 FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
      WHERE b.shard = t.value AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status = 'PAUSED' LIMIT 1)
WHEN 'cancelled batch' THEN ( -- [shard, workspace, id]
     SELECT 0 FROM holdfast_batch AS b
      WHERE t.key = 0 AND b.shard = q.value ->> 1 ->> 0 AND b.workspace = q.value ->> 1 ->> 1 AND b.id = q.value ->> 1 ->> 2 AND b.cancel_requested)
