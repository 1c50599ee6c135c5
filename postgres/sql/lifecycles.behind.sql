-- The workspaces in which another config of a program's lifecycle is in force, or
-- one is announced.
-- $1 shard, $2 workspace ('' for all), $3 lifecycle, $4 config
SELECT l.workspace
  FROM {schema}.lifecycle l
 WHERE l.shard = $1::smallint AND ($2::text = '' OR l.workspace = $2::text) AND l.name = $3::text
   AND (l.config <> $4::text OR l.wanted IS NOT NULL) AND l.origin = 'program'
 ORDER BY l.workspace
