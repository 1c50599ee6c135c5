-- Lists steps that wait for a signal although their deadline passed :patience ago or earlier, the oldest first.
SELECT s.run || '/' || s.name || '/' || s.visit, s.deadline, '', s.deadline, s.run, s.name, CAST(s.visit AS TEXT), '', ''
  FROM holdfast_step AS s INDEXED BY holdfast_step_turn
 WHERE s.shard = :shard AND s.handler = '' AND s.workspace = :workspace AND s.due_at IS NOT NULL AND s.due_at <= {now} - :patience
   AND s.type = 'event' AND s.deadline <= s.due_at
 ORDER BY s.due_at
 LIMIT :limit
