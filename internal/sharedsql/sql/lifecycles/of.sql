-- A workspace in which a lifecycle of a name was brought by a program, or by the door.
SELECT l.workspace
  FROM {schema}.lifecycle AS l
 WHERE l.shard = :shard AND (:workspace = '' OR l.workspace = :workspace) AND l.name = :lifecycle AND l.origin = :origin
 LIMIT 1
