WHEN 'step' THEN
     (SELECT 0 FROM {schema}.step s
       WHERE s.shard = t.shard::smallint AND s.handler = q.item ->> 1 AND s.due_at <= c.now
       ORDER BY s.due_at LIMIT 1)
WHEN 'held step' THEN
     (SELECT {include wake/time_left s}
       FROM {schema}.step s
      WHERE s.shard = t.shard::smallint AND s.holder IS NOT NULL AND s.until <= c.soon ORDER BY s.until LIMIT 1)
WHEN 'old run' THEN
     (SELECT 0 FROM {schema}.run r WHERE r.shard = t.shard::smallint AND r.prune_at <= c.now ORDER BY r.prune_at LIMIT 1)
WHEN 'cancelled run' THEN
     (SELECT 0 FROM {schema}.run r JOIN (SELECT (q.item ->> 1)::jsonb AS item) AS x
                 ON r.shard = (x.item ->> 0)::smallint AND r.workspace = x.item ->> 1 AND r.id = x.item ->> 2
              WHERE t.k = 1 AND r.cancel_requested)
