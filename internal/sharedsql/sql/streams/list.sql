-- Lists streams in the order of their names, with the times of their first and last events.
-- :from and :upto bound the names; :after is left out. There is one lower bound, because SQLite uses only one
SELECT s.name, s.first, s.head, s.state, coalesce(s.closed, ''),
       coalesce((SELECT e.at FROM {schema}.event AS e
                  WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name AND e.version = s.first), {no_time}),
       coalesce((SELECT e.at FROM {schema}.event AS e
                  WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name AND e.version = s.head), {no_time}),
       coalesce((SELECT e.name FROM {schema}.event AS e
                  WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name AND e.version = s.head), '')
  FROM {schema}.stream AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name >= :from AND s.name <> :after AND s.name < :upto
 ORDER BY s.name
 LIMIT :limit
