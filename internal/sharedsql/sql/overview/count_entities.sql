-- Counts entities by lifecycle, among the first :limit in the order of their keys.
SELECT x.name, {pg}count(*)
  FROM (SELECT t.lifecycle AS name FROM {schema}.entity AS t
         WHERE t.shard = :shard AND t.workspace = :workspace AND NOT t.side
         ORDER BY t.lifecycle, t.id
         LIMIT :limit) AS x
 GROUP BY x.name
