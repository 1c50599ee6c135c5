-- Returns a workspace that has a lifecycle of a name and an origin: a program, or the API.
SELECT l.workspace
  FROM {schema}.lifecycle AS l
 WHERE l.shard = :shard AND (:workspace = '' OR l.workspace = :workspace) AND l.name = :lifecycle AND l.origin = :origin
 LIMIT 1
