-- Lists steps whose leases have expired, with their runs.
SELECT {include runs/run_step_columns}
  FROM (SELECT d.*
          FROM {schema}.step d
         WHERE d.shard = :shard AND d.holder IS NOT NULL AND d.until <= (SELECT {now}) AND (:workspace = '' OR d.workspace = :workspace)
         ORDER BY d.until
         LIMIT :limit) AS s
 {include runs/join_run}
 ORDER BY s.until
