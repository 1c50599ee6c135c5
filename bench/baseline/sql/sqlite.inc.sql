UPDATE baseline_scope SET version = version + 1, updated_at = ?1,
state = json_set(state, '$.' || ?6, json_extract(state, '$.' || ?6) + ?7)
WHERE shard = ?2 AND workspace = ?3 AND kind = ?4 AND id = ?5 AND json_type(state, '$.' || ?6) = 'integer'
RETURNING version, json_extract(state, '$.' || ?6)
