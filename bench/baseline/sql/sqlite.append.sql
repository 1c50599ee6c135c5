UPDATE baseline_stream SET head = head + 1 WHERE shard = ? AND workspace = ? AND name = ? AND head = ?
