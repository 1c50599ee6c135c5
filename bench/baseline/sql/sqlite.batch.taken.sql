UPDATE baseline_batch SET status = 'RUNNING', next = next + ?4, running = running + ?4, charged = charged + ?5,
version = version + 1, served_at = ?6, updated_at = ?6
WHERE shard = ?1 AND workspace = ?2 AND id = ?3
RETURNING version
