UPDATE baseline_item SET state = 'running', charged = cost, holder = ?6, epoch = epoch + 1, until = ?7, taken_at = ?8, updated_at = ?8
WHERE shard = ?1 AND workspace = ?2 AND batch = ?3 AND n > ?4 AND n <= ?4 + ?5
