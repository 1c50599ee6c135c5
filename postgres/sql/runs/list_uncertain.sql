-- Lists steps that are parked until a person decides, with their runs: one, or those after a given one.
-- :run ('' for all)
SELECT {include runs/run_step_columns}
  FROM (SELECT d.*
          FROM {schema}.step d
         WHERE d.shard = :shard AND d.workspace = :workspace AND d.uncertain AND (:run = '' OR d.run = :run)
           AND d.run || '/' || d.name || '/' || d.visit::text > :after COLLATE "C"
         ORDER BY d.run || '/' || d.name || '/' || d.visit::text
         LIMIT :limit) AS s
 {include runs/join_run}
 ORDER BY s.run || '/' || s.name || '/' || s.visit::text
