INSERT INTO baseline_run
(shard, workspace, id, definition, key, status, version, input, state, memo, step, visit, cancel_requested, created_at, started_at, updated_at)
VALUES (?1, ?2, ?3, 'five@1', ?4, 'RUNNING', 1, ?5, '{}', '{}', ?6, 1, 0, ?7, ?7, ?7)
ON CONFLICT (shard, workspace, key) WHERE key IS NOT NULL DO NOTHING RETURNING version
