WHEN 'old token' THEN
     (SELECT 0 FROM {schema}.token k WHERE k.shard + 0 = t.shard::smallint AND k.expires_at < c.now ORDER BY k.expires_at LIMIT 1)
