INSERT INTO baseline_event (shard, id, n, workspace, stream, version, name, data, at)
VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?)
