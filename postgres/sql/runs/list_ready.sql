-- Lists due steps with their runs, of one workspace or of all.
-- :handlers a JSON list; :kind the required kind of the handlers ('' for those of a program)
SELECT {include runs/run_step_columns}
  FROM pg_catalog.jsonb_array_elements_text(:handlers::jsonb) AS h(name)
 CROSS JOIN LATERAL (
       (SELECT d.*
          FROM {schema}.step d
         WHERE :workspace = '' AND d.shard = :shard AND d.handler = h.name AND d.due_at <= (SELECT {now})
           AND (:kind = '' OR EXISTS (SELECT 1 FROM {schema}.handler k WHERE k.shard = d.shard AND k.workspace = d.workspace AND k.name = d.handler AND k.kind = :kind))
         ORDER BY d.due_at
         LIMIT :limit)
       UNION ALL
       (SELECT d.* -- regardless of how much is due in others
          FROM {schema}.step d
         WHERE :workspace <> '' AND d.shard + 0 = :shard AND d.handler = h.name AND d.workspace = :workspace AND d.due_at <= (SELECT {now})
           AND (:kind = '' OR EXISTS (SELECT 1 FROM {schema}.handler k WHERE k.shard = d.shard AND k.workspace = d.workspace AND k.name = d.handler AND k.kind = :kind))
         ORDER BY d.due_at
         LIMIT :limit)) AS s
 {include runs/join_run}
 ORDER BY s.due_at
 LIMIT :limit
