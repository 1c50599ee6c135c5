-- Lists the definitions of a workspace by their ids, after a given one.
SELECT d.id, d.body{text}, d.created_at
  FROM {schema}.definition AS d
 WHERE d.shard = :shard AND d.workspace = :workspace AND d.id > :after
 ORDER BY d.id
 LIMIT :limit
