-- The keys of subjects, wrapped; of one that is forgotten, NULL.
SELECT s.name, s.key
  FROM holdfast_subject AS s
 WHERE s.shard = :shard AND s.workspace = :workspace
   AND s.name IN (SELECT q.value FROM json_each(:subjects) AS q)
