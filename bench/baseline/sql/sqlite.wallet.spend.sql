UPDATE baseline_wallet SET balance = balance - ?4, version = version + ?5, updated_at = ?6
WHERE shard = ?1 AND workspace = ?2 AND id = ?3
