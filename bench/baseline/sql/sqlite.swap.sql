UPDATE baseline_scope SET version = version + 1, state = ?6, updated_at = ?7
WHERE shard = ?1 AND workspace = ?2 AND kind = ?3 AND id = ?4 AND version = ?5 RETURNING version
