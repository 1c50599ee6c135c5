-- Whether there may be something to do: marks, or streams that are due.
-- $1 shard, $2 workspace ('' for all), $3 reactions as a JSON list
SELECT 1
 WHERE EXISTS (SELECT 1
                 FROM pg_catalog.jsonb_array_elements_text($3::text::jsonb) AS q(name)
                CROSS JOIN LATERAL (SELECT x.version FROM {schema}.due x
                                     WHERE x.shard = $1::smallint AND x.reaction = q.name AND ($2::text = '' OR x.workspace = $2)
                                     LIMIT 1) AS d)
    OR EXISTS (SELECT 1
                 FROM pg_catalog.jsonb_array_elements_text($3::text::jsonb) AS q(name)
                CROSS JOIN LATERAL (SELECT f.rank FROM {schema}.follow f
                                     WHERE f.shard = $1::smallint AND ($2::text = '' OR f.workspace = $2) AND f.reaction = q.name
                                       AND f.crash_group = 0
                                       AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark AND f.due_at <= {now}
                                     ORDER BY f.rank
                                     LIMIT 1) AS d)
    OR EXISTS (SELECT 1
                 FROM pg_catalog.jsonb_array_elements_text($3::text::jsonb) AS q(name)
                CROSS JOIN LATERAL (SELECT f.rank FROM {schema}.follow f
                                     WHERE f.shard = $1::smallint AND ($2::text = '' OR f.workspace = $2) AND f.reaction = q.name
                                       AND f.crash_group > 0
                                       AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark AND f.due_at <= {now}
                                     LIMIT 1) AS d)
