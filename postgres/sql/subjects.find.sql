-- The keys of subjects, wrapped; of one that is forgotten, NULL.
-- $1 shard, $2 workspace, $3 subjects as a JSON list
SELECT s.name, s.key
  FROM {schema}.subject s
 WHERE s.shard = $1 AND s.workspace = $2
   AND s.name IN (SELECT q.value FROM jsonb_array_elements_text($3::jsonb) AS q(value))
