WHEN 'old request' THEN (
     SELECT 0 FROM holdfast_request AS r INDEXED BY holdfast_request_expires WHERE r.shard = t.value AND r.expires_at <= {now} LIMIT 1)
