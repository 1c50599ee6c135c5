-- Lists due steps with their runs, of one workspace or of all.
SELECT {include runs/run_step_columns}
  FROM (SELECT d.*
          FROM json_each(:handlers) AS h
         CROSS JOIN holdfast_step AS d INDEXED BY holdfast_step_due
         WHERE :workspace = '' AND d.shard = :shard AND d.handler = h.value AND d.due_at IS NOT NULL AND d.due_at <= {now}
        UNION ALL
        SELECT d.* -- regardless of how much is due in others
          FROM json_each(:handlers) AS h
         CROSS JOIN holdfast_step AS d INDEXED BY holdfast_step_turn
         WHERE :workspace <> '' AND d.shard = :shard AND d.handler = h.value AND d.workspace = :workspace AND d.due_at IS NOT NULL AND d.due_at <= {now}) AS s
 CROSS JOIN holdfast_run AS r ON r.shard = s.shard AND r.workspace = s.workspace AND r.id = s.run
  {include runs/join_inbox}
 WHERE s.shard = :shard AND (:kind = '' OR EXISTS (SELECT 1 FROM holdfast_handler AS k WHERE k.shard = s.shard AND k.workspace = s.workspace AND k.name = s.handler AND k.kind = :kind))
 ORDER BY s.due_at
 LIMIT :limit
