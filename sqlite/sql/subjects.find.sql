-- The keys of subjects, wrapped; of one that is forgotten, NULL.
-- ?1 shard, ?2 workspace, ?3 subjects as a JSON list
-- do
SELECT s.name, s.key
  FROM holdfast_subject AS s
 WHERE s.shard = ?1 AND s.workspace = ?2
   AND s.name IN (SELECT q.value FROM json_each(?3) AS q)
