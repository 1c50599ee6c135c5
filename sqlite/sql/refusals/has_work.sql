WHEN 'old refusal' THEN (
     SELECT 0 FROM holdfast_refusal AS a INDEXED BY holdfast_refusal_at WHERE a.shard = t.value AND a.at < {now} - (q.value ->> 1) LIMIT 1)
