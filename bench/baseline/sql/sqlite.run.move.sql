UPDATE baseline_run SET status = CASE WHEN ?4 = '' THEN 'COMPLETED' ELSE 'RUNNING' END, step = CASE WHEN ?4 = '' THEN step ELSE ?4 END,
version = version + 2, output = ?5, finished_at = CASE WHEN ?4 = '' THEN ?6 END, updated_at = ?6
WHERE shard = ?1 AND workspace = ?2 AND id = ?3 RETURNING version
