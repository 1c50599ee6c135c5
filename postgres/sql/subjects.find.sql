-- The keys of subjects, wrapped; of one that is forgotten, NULL.
-- $1 shard, $2 workspace, $3 subjects as a JSON list
SELECT s.name, s.key
  FROM (SELECT DISTINCT q.value FROM pg_catalog.jsonb_array_elements_text($3::jsonb) AS q(value)) AS q
 CROSS JOIN LATERAL (
       SELECT s.name, s.key FROM {schema}.subject s
        WHERE s.shard = $1 AND s.workspace = $2 AND s.name = q.value
        LIMIT 1) AS s
