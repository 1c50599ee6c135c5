INSERT INTO baseline_stream (shard, workspace, name, head) VALUES (?, ?, ?, 0)
ON CONFLICT (shard, workspace, name) DO NOTHING
