WHEN 'old request' THEN
     (SELECT 0 FROM {schema}.request r WHERE r.shard + 0 = t.shard::smallint AND r.expires_at <= c.now ORDER BY r.expires_at LIMIT 1)
