UPDATE baseline_step SET status = 'COMPLETED', output = ?5, holder = NULL, until = NULL, finished_at = ?6
WHERE shard = ?1 AND workspace = ?2 AND run = ?3 AND name = ?4 AND visit = 1 AND epoch = 1 AND until > ?6 RETURNING n
