-- Counts the entities of a lifecycle by status, among the first :limit in the order of their ids.
SELECT x.name, {pg}count(*)
  FROM (SELECT t.status AS name FROM {schema}.entity AS t
         WHERE t.shard = :shard AND t.workspace = :workspace AND t.lifecycle = :lifecycle AND NOT t.side
         ORDER BY t.id
         LIMIT :limit) AS x
 GROUP BY x.name
