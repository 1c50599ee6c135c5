-- The workspaces that a lifecycle is registered in.
-- ?1 shard, ?2 workspace ('' for all), ?3 lifecycle
-- do
SELECT l.workspace
  FROM holdfast_lifecycle AS l
 WHERE l.shard = ?1 AND (?2 = '' OR l.workspace = ?2) AND l.name = ?3
 ORDER BY l.workspace
