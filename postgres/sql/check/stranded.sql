-- Judges entities by the config in force, a page at a time: answers those that are in a status which it has not; that are free in a claim
-- status; whose operation leads to a status which it has not, or which is a claim status; or whose operation has no plan and is in no
-- claim status, so that no end moves it. And the last of the page.
SELECT j.nth, j.wrong <> '', j.shard, j.workspace, j.lifecycle, j.id, j.version, 0, 0, 0, j.wrong
  FROM (SELECT pg_catalog.row_number() OVER (ORDER BY c.shard, c.workspace, c.lifecycle, c.id) AS nth, pg_catalog.count(*) OVER () AS size,
               CASE WHEN c.statuses IS NULL THEN ''
                    WHEN NOT c.side AND NOT c.statuses ? c.status THEN 'gone'
                    WHEN c.phase = 'free' THEN CASE WHEN NOT c.side AND c.claims ? c.status THEN 'stray' ELSE '' END
                    WHEN c.plan ->> 'operation'::text = c.operation
                    THEN CASE WHEN EXISTS (SELECT 1 FROM pg_catalog.unnest(ARRAY[c.revert, c.plan ->> 'success'::text, c.plan ->> 'failed'::text]) AS p(status)
                                            WHERE NOT c.statuses ? p.status OR c.claims ? p.status) THEN 'target' ELSE '' END
                    WHEN NOT c.statuses ? c.revert THEN 'target'
                    WHEN NOT c.side AND c.status <> c.revert AND NOT c.claims ? c.status THEN 'claim'
                    ELSE '' END AS wrong, c.*
          FROM (SELECT x.shard, x.workspace, x.lifecycle, x.id, x.version, x.side, x.status, x.phase, x.operation, x.revert, x.plan,
                       l.statuses::jsonb AS statuses, CASE WHEN l.wanted IS NULL THEN l.claims::jsonb END AS claims
                  FROM {schema}.entity x
                  LEFT JOIN {schema}.lifecycle l ON l.shard = x.shard AND l.workspace = x.workspace AND l.name = x.lifecycle
                 WHERE (x.shard, x.workspace, x.lifecycle, x.id) > (:shard, :workspace, :lifecycle, :entity)
                 ORDER BY x.shard, x.workspace, x.lifecycle, x.id
                 LIMIT :limit) AS c) AS j
 WHERE j.wrong <> '' OR j.nth = j.size
 ORDER BY j.nth
