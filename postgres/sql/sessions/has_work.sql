WHEN 'old session' THEN
     (SELECT 0 FROM {schema}.session k WHERE k.shard + 0 = t.shard::smallint AND k.expires_at < c.now ORDER BY k.expires_at LIMIT 1)
