UPDATE baseline_task SET holder = ?4, epoch = epoch + 1, until = ?6
WHERE shard = ?1 AND workspace = ?2 AND queue = ?3 AND id IN (
  SELECT id FROM baseline_task
  WHERE shard = ?1 AND workspace = ?2 AND queue = ?3 AND state = 'due' AND holder IS NULL AND due_at <= ?5
  ORDER BY due_at LIMIT ?7)
RETURNING queue, id, epoch, until, input
