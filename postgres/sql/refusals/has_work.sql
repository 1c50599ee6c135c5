WHEN 'old refusal' THEN
     (SELECT 0 FROM {schema}.refusal a WHERE a.shard = t.shard::smallint AND a.at < c.now - (q.item ->> 1)::bigint::float8 * interval '1 ms' ORDER BY a.at LIMIT 1)
