-- Counts streams by state, among the first :limit in the order of their keys.
SELECT x.name, {pg}count(*)
  FROM (SELECT t.state AS name FROM {schema}.stream AS t
         WHERE t.shard = :shard AND t.workspace = :workspace
         ORDER BY t.name
         LIMIT :limit) AS x
 GROUP BY x.name
