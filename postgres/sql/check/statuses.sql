-- Checks one page of entities against the current config. Returns those in a status that the config does not have; those that are free in
-- a claim status; those whose operation leads to a status that the config does not have or to a claim status; and those whose operation
-- has no plan and whose status is not a claim status, so that the end of the operation moves them nowhere. Returns the last entity of the
-- page, too.
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
                  LEFT JOIN LATERAL (
                       SELECT l.statuses, l.claims, l.wanted FROM {schema}.lifecycle l
                        WHERE l.shard = x.shard AND l.workspace = x.workspace AND l.name = x.lifecycle
                        LIMIT 1) AS l ON true
                 WHERE (x.shard, x.workspace, x.lifecycle, x.id) > (:shard, :workspace, :lifecycle, :entity)
                 ORDER BY x.shard, x.workspace, x.lifecycle, x.id
                 LIMIT :limit) AS c) AS j
 WHERE j.wrong <> '' OR j.nth = j.size
 ORDER BY j.nth
