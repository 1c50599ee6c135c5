UPDATE baseline_wallet SET version = version + 1, balance = balance - ?4, reserved = reserved + ?5, updated_at = ?6
WHERE shard = ?1 AND workspace = ?2 AND id = ?3
RETURNING version, balance, reserved
