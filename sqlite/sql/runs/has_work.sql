WHEN 'held step' THEN (
     SELECT max(s.until - {now}, 0) FROM holdfast_step AS s INDEXED BY holdfast_step_held
      WHERE s.shard = t.value AND s.holder IS NOT NULL AND s.until <= {now} + :soon ORDER BY s.until LIMIT 1)
WHEN 'step' THEN (
     SELECT 0 FROM holdfast_step AS s INDEXED BY holdfast_step_due
      WHERE s.shard = t.value AND s.handler = q.value ->> 1 AND s.due_at IS NOT NULL AND s.due_at <= {now} LIMIT 1)
WHEN 'old run' THEN (
     SELECT 0 FROM holdfast_run AS r INDEXED BY holdfast_run_prune WHERE r.shard = t.value AND r.prune_at IS NOT NULL AND r.prune_at <= {now} LIMIT 1)
WHEN 'cancelled run' THEN (
     SELECT 0 FROM holdfast_run AS r
      WHERE t.key = 0 AND r.shard = q.value ->> 1 ->> 0 AND r.workspace = q.value ->> 1 ->> 1 AND r.id = q.value ->> 1 ->> 2 AND r.cancel_requested)
