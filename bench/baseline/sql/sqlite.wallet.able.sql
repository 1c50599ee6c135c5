SELECT 1 FROM baseline_wallet WHERE shard = ? AND workspace = ? AND id = ? AND balance >= ? AND reserved + ? >= 0
