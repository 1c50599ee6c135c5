-- Lists the configs that were published through the API, changed at or after a time.
SELECT l.workspace, l.name, l.config, l.updated_at
  FROM holdfast_lifecycle AS l
 WHERE l.shard = :shard AND (:workspace = '' OR l.workspace = :workspace) AND l.origin = 'door'
   AND l.updated_at >= :since
 ORDER BY l.updated_at
 LIMIT :limit
