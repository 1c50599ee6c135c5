-- Lists the workspaces in which a program's lifecycle has another config, or a change of its
-- config is announced.
SELECT l.workspace
  FROM {schema}.lifecycle AS l
 WHERE l.shard = :shard AND (:workspace = '' OR l.workspace = :workspace) AND l.name = :lifecycle
   AND (l.config <> :config OR l.wanted IS NOT NULL) AND l.origin = 'program'
 ORDER BY l.workspace
