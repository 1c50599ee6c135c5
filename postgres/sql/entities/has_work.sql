WHEN 'operation' THEN
     (SELECT 0 FROM {schema}.entity e
       WHERE e.shard + 0 = t.shard::smallint AND coalesce(e.queue, 'l:' || e.lifecycle) = q.item ->> 1 AND e.phase = 'due' AND e.due_at <= c.now
       ORDER BY e.due_at LIMIT 1)
WHEN 'held operation' THEN
     (SELECT {include wake/time_left e}
       FROM {schema}.entity e
      WHERE e.shard + 0 = t.shard::smallint AND e.holder IS NOT NULL AND e.until <= c.soon ORDER BY e.until LIMIT 1)
