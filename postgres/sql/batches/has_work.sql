WHEN 'batch' THEN
     (SELECT 0 FROM {schema}.batch b
       WHERE b.shard + 0 = t.shard::smallint AND b.handler = q.item ->> 1 AND b.status NOT IN ('CANCELLED', 'COMPLETED')
         AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested AND b.running < b.parallel AND (b.next < b.items OR b.waiting > 0)
       LIMIT 1)
WHEN 'maintenance' THEN
     (SELECT 0 FROM {schema}.batch b WHERE b.shard = t.shard::smallint AND b.due_at <= c.now ORDER BY b.due_at LIMIT 1)
WHEN 'old batch' THEN
     (SELECT 0 FROM {schema}.batch b WHERE b.shard + 0 = t.shard::smallint AND b.prune_at <= c.now ORDER BY b.prune_at LIMIT 1)
WHEN 'cleaning' THEN
     (SELECT 0 FROM {schema}.item i WHERE i.shard = t.shard::smallint AND i.sweep_at <= c.now ORDER BY i.sweep_at LIMIT 1)
WHEN 'held item' THEN -- in batches with running items
     (SELECT {include wake/time_left x}
        FROM {schema}.batch b
       CROSS JOIN LATERAL (SELECT i.until FROM {schema}.item i
                            WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.holder IS NOT NULL AND i.until <= c.soon
                            ORDER BY i.until LIMIT 1) AS x
       WHERE b.shard + 0 = t.shard::smallint AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.running > 0
       ORDER BY x.until LIMIT 1)
WHEN 'paused batch' THEN
     (SELECT 0 FROM {schema}.batch b WHERE b.shard + 0 = t.shard::smallint AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status = 'PAUSED' LIMIT 1)
WHEN 'cancelled batch' THEN -- [shard, workspace, id]
     (SELECT 0 FROM {schema}.batch b JOIN (SELECT (q.item ->> 1)::jsonb AS item) AS x
                 ON b.shard = (x.item ->> 0)::smallint AND b.workspace = x.item ->> 1 AND b.id = x.item ->> 2
              WHERE t.k = 1 AND b.cancel_requested)
