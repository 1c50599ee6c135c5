-- The configs that the door brought, changed at or after a time.
-- ?1 shard, ?2 workspace ('' for all), ?3 since in ms, ?4 limit
-- do
SELECT l.workspace, l.name, l.config, l.updated_at
  FROM holdfast_lifecycle AS l
 WHERE l.shard = ?1 AND (?2 = '' OR l.workspace = ?2) AND l.origin = 'door'
   AND l.updated_at >= ?3
 ORDER BY l.updated_at
 LIMIT +?4
