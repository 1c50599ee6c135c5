INSERT INTO baseline_scope (shard, workspace, kind, id, version, state, created_at, updated_at)
VALUES (?, ?, ?, ?, 0, ?, ?, ?) ON CONFLICT (shard, workspace, kind, id) DO UPDATE
SET version = version + 1, state = excluded.state, updated_at = excluded.updated_at
