INSERT INTO baseline_step
(shard, workspace, run, name, visit, n, type, handler, status, input, attempts, failures, holder, epoch, until, deaths, timeout, taken_at, begun, uncertain, safety, unknown, created_at, started_at)
VALUES (?1, ?2, ?3, ?4, 1, ?5, 'task', ?4, 'RUNNING', ?6, 1, 0, ?7, 1, ?8, 0, 900000, ?9, 0, 0, '', '', ?9, ?9)
