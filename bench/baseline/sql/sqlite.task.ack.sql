UPDATE baseline_task SET state = 'done', version = version + 1, output = ?6, error = NULL,
due_at = ?7, holder = NULL, until = NULL, updated_at = ?7
WHERE shard = ?1 AND workspace = ?2 AND queue = ?3 AND id = ?4 AND epoch = ?5 AND until > ?7
RETURNING version, failures
