UPDATE baseline_batch SET running = running - ?4, succeeded = succeeded + ?4, version = version + ?4, updated_at = ?5
WHERE shard = ?1 AND workspace = ?2 AND id = ?3
RETURNING version, items - next + waiting, running, succeeded, failed, cancelled, accepted
