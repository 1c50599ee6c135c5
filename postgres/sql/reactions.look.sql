-- Where there may be something to do: reactions and workspaces that have marks, or streams that are due, behind a
-- workspace of each reaction, and '' behind its last. The index is read from one workspace to the next, however much is
-- due in each.
-- $1 shard, $2 workspace ('' for all), $3 reactions as a JSON list of [name, behind which workspace], $4 limit, $5 workspaces that are left out, as a JSON list
WITH RECURSIVE turn AS (
    SELECT q.item ->> 0 AS name, (q.item ->> 1) COLLATE pg_catalog."C" AS workspace, 0 AS nth
      FROM pg_catalog.jsonb_array_elements($3::text::jsonb) AS q(item)
    UNION ALL
    SELECT t.name, least(
           (SELECT f.workspace FROM {schema}.follow f
             WHERE f.shard = $1::smallint AND f.reaction = t.name AND f.workspace > t.workspace AND ($2::text = '' OR f.workspace = $2)
               AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark AND f.due_at <= (SELECT {now})
             ORDER BY f.workspace
             LIMIT 1),
           (SELECT x.workspace FROM {schema}.due x
             WHERE x.shard = $1::smallint AND x.reaction = t.name AND x.workspace > t.workspace AND ($2::text = '' OR x.workspace = $2)
             ORDER BY x.workspace
             LIMIT 1)), t.nth + 1
      FROM turn t
     WHERE t.workspace IS NOT NULL
)
SELECT t.name, coalesce(t.workspace, '')
  FROM turn t
 WHERE t.nth > 0 AND NOT $5::text::jsonb ? coalesce(t.workspace, '')
 LIMIT $4::bigint
