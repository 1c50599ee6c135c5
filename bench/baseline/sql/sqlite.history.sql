INSERT INTO baseline_history (shard, id, n, workspace, stream, version, name, data, at)
VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?)
