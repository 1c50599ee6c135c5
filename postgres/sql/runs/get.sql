-- Returns a run with one of its steps: a named one, or the current one.
-- :step ('' for the current one)
SELECT {include runs/run_step_columns}
  FROM {schema}.run r
 CROSS JOIN LATERAL (
       SELECT s.* FROM {schema}.step s
        WHERE s.shard = r.shard AND s.workspace = r.workspace AND s.run = r.id
          AND s.name = CASE WHEN :step = '' THEN r.step ELSE :step END AND s.visit = CASE WHEN :step = '' THEN r.visit ELSE :visit END
        LIMIT 1) AS s
  {include runs/join_inbox}
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.id = :run
