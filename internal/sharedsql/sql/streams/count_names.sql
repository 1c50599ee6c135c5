-- Counts the newest :limit events of a stream by name.
SELECT x.name, {pg}count(*)
  FROM (SELECT e.name FROM {schema}.event AS e
         WHERE e.shard = :shard AND e.workspace = :workspace AND e.stream = :stream AND e.version >= :first
         ORDER BY e.version DESC
         LIMIT :limit) AS x
 GROUP BY x.name
