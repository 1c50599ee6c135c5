WHEN 'old session' THEN (
     SELECT 0 FROM holdfast_session AS k INDEXED BY holdfast_session_expires WHERE k.shard = t.value AND k.expires_at < {now} LIMIT 1)
