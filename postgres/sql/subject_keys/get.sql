-- Returns the wrapped keys of subjects; NULL for a forgotten one.
-- :subjects a JSON list
SELECT s.name, s.key
  FROM (SELECT DISTINCT q.value FROM pg_catalog.jsonb_array_elements_text(:subjects::jsonb) AS q(value)) AS q
 CROSS JOIN LATERAL (
       SELECT s.name, s.key FROM {schema}.subject s
        WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = q.value
        LIMIT 1) AS s
