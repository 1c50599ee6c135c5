INSERT INTO baseline_entity (shard, workspace, lifecycle, id, status, version, data, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?) ON CONFLICT (shard, workspace, lifecycle, id) DO NOTHING
