-- Returns the wrapped keys of subjects; NULL for a forgotten one.
SELECT s.name, s.key
  FROM holdfast_subject AS s
 WHERE s.shard = :shard AND s.workspace = :workspace
   AND s.name IN (SELECT q.value FROM json_each(:subjects) AS q)
