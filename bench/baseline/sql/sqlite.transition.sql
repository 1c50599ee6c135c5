UPDATE baseline_entity SET status = ?, version = version + 1, updated_at = ?
WHERE shard = ? AND workspace = ? AND lifecycle = ? AND id = ? AND status = ?
RETURNING version, data, created_at
