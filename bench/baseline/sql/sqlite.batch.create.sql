INSERT INTO baseline_batch
(shard, workspace, id, wallet, handler, status, parallel, attempts, allowed, timeout, undo, artifacts, sealed, cancel_requested,
 items, next, waiting, running, succeeded, accepted, failed, cancelled, dirty, charged, refunded, need, version, served_at, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, 'PENDING', ?6, 3, 5, 900000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ?7, ?7, ?7)
ON CONFLICT (shard, workspace, id) DO NOTHING
