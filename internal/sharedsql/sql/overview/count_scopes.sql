-- Counts scopes by kind, among the first :limit in the order of their keys.
SELECT x.name, {pg}count(*)
  FROM (SELECT t.kind AS name FROM {schema}.scope AS t
         WHERE t.shard = :shard AND t.workspace = :workspace AND t.state IS NOT NULL
         ORDER BY t.kind, t.id
         LIMIT :limit) AS x
 GROUP BY x.name
