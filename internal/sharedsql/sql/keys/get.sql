-- Returns one API key.
SELECT k.id, k.name, k.role, k.requesters{text}, k.handlers{text}, k.restrictions{text}, k.rate, coalesce(k.successor, ''), k.created_by, k.created_at,
       coalesce(k.expires_at, {no_time}), coalesce(k.revoked_at, {no_time}), coalesce(k.last_used_at, {no_time})
  FROM {schema}.api_key AS k
 WHERE k.workspace = :workspace AND k.id = :id AND :shard IS NOT NULL
