UPDATE baseline_item SET state = 'succeeded', output = ?6, holder = NULL, until = NULL, updated_at = ?7
WHERE shard = ?1 AND workspace = ?2 AND batch = ?3 AND key = ?4 AND state = 'running' AND epoch = ?5 AND until > ?7
RETURNING failures, deaths
