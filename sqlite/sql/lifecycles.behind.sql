-- The workspaces in which another config of a program's lifecycle is in force, or
-- one is announced.
-- ?1 shard, ?2 workspace ('' for all), ?3 lifecycle, ?4 config
-- do
SELECT l.workspace
  FROM holdfast_lifecycle AS l
 WHERE l.shard = ?1 AND (?2 = '' OR l.workspace = ?2) AND l.name = ?3 AND (l.config <> ?4 OR l.wanted IS NOT NULL) AND l.origin = 'program'
 ORDER BY l.workspace
