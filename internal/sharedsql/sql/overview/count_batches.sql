-- Counts ended batches by status, among the first :limit in the order of their keys.
SELECT x.name, {pg}count(*)
  FROM (SELECT t.status AS name FROM {schema}.batch AS t
         WHERE t.shard = :shard AND t.workspace = :workspace AND t.about IS NULL AND t.status IN ('CANCELLED', 'COMPLETED')
         ORDER BY t.id
         LIMIT :limit) AS x
 GROUP BY x.name
