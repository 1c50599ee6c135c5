INSERT INTO baseline_task
(shard, workspace, queue, id, version, state, due_at, input, failures, epoch, deaths, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, 0, 'due', ?6, ?5, 0, 0, 0, ?6, ?6) ON CONFLICT (shard, workspace, queue, id) DO NOTHING
