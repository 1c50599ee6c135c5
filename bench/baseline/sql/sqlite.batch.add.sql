UPDATE baseline_batch SET items = items + ?4, version = version + 1, updated_at = ?5
WHERE shard = ?1 AND workspace = ?2 AND id = ?3 AND NOT sealed AND NOT cancel_requested
RETURNING items, version
