-- Returns a run with one of its steps: a named one, or the current one.
SELECT {include runs/run_step_columns}
  FROM holdfast_run AS r
  JOIN holdfast_step AS s ON s.shard = r.shard AND s.workspace = r.workspace AND s.run = r.id
                         AND s.name = CASE WHEN :step = '' THEN r.step ELSE :step END AND s.visit = CASE WHEN :step = '' THEN r.visit ELSE :visit END
  {include runs/join_inbox}
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.id = :run
