-- Lists steps that are parked until a person decides, with their runs: one, or those after a given one.
SELECT {include runs/run_step_columns}
  FROM holdfast_step AS s INDEXED BY holdfast_step_uncertain
  JOIN holdfast_run AS r ON r.shard = s.shard AND r.workspace = s.workspace AND r.id = s.run
  {include runs/join_inbox}
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.uncertain = 1 AND (:run = '' OR s.run = :run)
   AND s.run || '/' || s.name || '/' || s.visit > :after
 ORDER BY s.run || '/' || s.name || '/' || s.visit
 LIMIT :limit
