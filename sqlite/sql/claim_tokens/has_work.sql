WHEN 'old token' THEN (
     SELECT 0 FROM holdfast_token AS k INDEXED BY holdfast_token_expires WHERE k.shard = t.value AND k.expires_at < {now} LIMIT 1)
