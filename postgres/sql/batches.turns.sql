-- In which workspaces there are items to clean up after, behind a workspace, and '' behind the last. The index is read from
-- one workspace to the next, however many there are in each.
-- $1 shard, $2 workspace ('' for all), $3 a JSON list of [name, behind which workspace], $4 limit, $5 workspaces that are left out, as a JSON list
WITH RECURSIVE turn AS (
    SELECT q.item ->> 0 AS name, (q.item ->> 1) COLLATE pg_catalog."C" AS workspace, 0 AS nth
      FROM pg_catalog.jsonb_array_elements($3::text::jsonb) AS q(item)
    UNION ALL
    SELECT t.name,
           (SELECT i.workspace FROM {schema}.item i
             WHERE i.shard + 0 = $1::smallint AND i.workspace > t.workspace AND ($2::text = '' OR i.workspace = $2)
               AND i.sweep_at <= (SELECT {now})
             ORDER BY i.workspace
             LIMIT 1), t.nth + 1
      FROM turn t
     WHERE t.workspace IS NOT NULL
)
SELECT t.name, coalesce(t.workspace, '')
  FROM turn t
 WHERE t.nth > 0 AND NOT $5::text::jsonb ? coalesce(t.workspace, '')
 LIMIT $4::bigint
