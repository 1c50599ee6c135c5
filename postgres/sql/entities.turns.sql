-- In which workspaces operations of a queue are due, behind a workspace of each queue, and '' behind its last. The index is
-- read from one workspace to the next, however much is due in each.
-- $1 shard, $2 workspace ('' for all), $3 queues as a JSON list of [queue, behind which workspace], $4 limit, $5 workspaces that are left out, as a JSON list
WITH RECURSIVE turn AS (
    SELECT q.item ->> 0 AS name, (q.item ->> 1) COLLATE pg_catalog."C" AS workspace, 0 AS nth
      FROM pg_catalog.jsonb_array_elements($3::text::jsonb) AS q(item)
    UNION ALL
    SELECT t.name,
           (SELECT e.workspace FROM {schema}.entity e
             WHERE e.shard + 0 = $1::smallint AND coalesce(e.queue, 'l:' || e.lifecycle) = t.name AND e.workspace > t.workspace AND ($2::text = '' OR e.workspace = $2)
               AND e.phase = 'due' AND e.due_at <= (SELECT {now})
             ORDER BY e.workspace
             LIMIT 1), t.nth + 1
      FROM turn t
     WHERE t.workspace IS NOT NULL
)
SELECT t.name, coalesce(t.workspace, '')
  FROM turn t
 WHERE t.nth > 0 AND NOT $5::text::jsonb ? coalesce(t.workspace, '')
 LIMIT $4::bigint
