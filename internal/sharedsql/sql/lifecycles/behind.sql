-- The workspaces in which another config of a program's lifecycle is in force, or
-- one is announced.
SELECT l.workspace
  FROM {schema}.lifecycle AS l
 WHERE l.shard = :shard AND (:workspace = '' OR l.workspace = :workspace) AND l.name = :lifecycle
   AND (l.config <> :config OR l.wanted IS NOT NULL) AND l.origin = 'program'
 ORDER BY l.workspace
