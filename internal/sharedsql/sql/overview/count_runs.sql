-- Counts ended runs by status, among the first :limit in the order of their ids. Keys of deleted runs (runs/delete) have
-- other ids.
SELECT x.name, {pg}count(*)
  FROM (SELECT t.status AS name FROM {schema}.run AS t
         WHERE t.shard = :shard AND t.workspace = :workspace AND t.status IN ('COMPLETED', 'CANCELLED') AND t.id >= 'run_'
         ORDER BY t.id
         LIMIT :limit) AS x
 GROUP BY x.name
