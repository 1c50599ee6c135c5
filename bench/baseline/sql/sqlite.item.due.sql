SELECT key, cost, epoch + 1, input FROM baseline_item
WHERE shard = ?1 AND workspace = ?2 AND batch = ?3 AND n > ?4 AND n <= ?4 + ?5
ORDER BY n
