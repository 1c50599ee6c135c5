SELECT version, state FROM baseline_scope WHERE shard = ? AND workspace = ? AND kind = ? AND id = ?
