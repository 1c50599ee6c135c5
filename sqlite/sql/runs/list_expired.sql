-- Lists steps whose leases have expired, with their runs.
SELECT {include runs/run_step_columns}
  FROM holdfast_step AS s INDEXED BY holdfast_step_held
  JOIN holdfast_run AS r ON r.shard = s.shard AND r.workspace = s.workspace AND r.id = s.run
  {include runs/join_inbox}
 WHERE s.shard = :shard AND s.holder IS NOT NULL AND s.until <= {now} AND (:workspace = '' OR s.workspace = :workspace)
 ORDER BY s.until
 LIMIT :limit
