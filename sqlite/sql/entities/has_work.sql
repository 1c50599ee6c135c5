WHEN 'held operation' THEN (
     SELECT max(e.until - {now}, 0) FROM holdfast_entity AS e INDEXED BY holdfast_entity_held
      WHERE e.shard = t.value AND e.holder IS NOT NULL AND e.until <= {now} + :soon ORDER BY e.until LIMIT 1)
WHEN 'operation' THEN (
     SELECT 0 FROM holdfast_entity AS e INDEXED BY holdfast_entity_due
      WHERE e.shard = t.value AND coalesce(e.queue, 'l:' || e.lifecycle) = q.value ->> 1 AND e.phase = 'due' AND e.due_at <= {now} LIMIT 1)
