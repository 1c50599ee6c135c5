-- Checks one page of entities against the current config. Returns those in a status that the config does not have; those that are free in
-- a claim status; those whose operation leads to a status that the config does not have or to a claim status; and those whose operation
-- has no plan and whose status is not a claim status, so that the end of the operation moves them nowhere. Returns the last entity of the
-- page, too.
SELECT j.nth, j.wrong <> '', j.shard, j.workspace, j.lifecycle, j.id, j.version, 0, 0, 0, j.wrong
  FROM (SELECT row_number() OVER (ORDER BY c.shard, c.workspace, c.lifecycle, c.id) AS nth, count(*) OVER () AS size,
               CASE WHEN c.statuses IS NULL THEN ''
                    WHEN c.side = 0 AND NOT c.status IN (SELECT s.value FROM json_each(c.statuses) AS s) THEN 'gone'
                    WHEN c.phase = 'free' THEN iif(c.side = 0 AND c.status IN (SELECT s.value FROM json_each(c.claims) AS s), 'stray', '')
                    WHEN c.plan ->> 'operation' = c.operation
                    THEN iif(EXISTS (SELECT 1 FROM json_each(json_array(c.revert, c.plan ->> 'success', c.plan ->> 'failed')) AS p
                                      WHERE NOT p.value IN (SELECT s.value FROM json_each(c.statuses) AS s) OR p.value IN (SELECT s.value FROM json_each(c.claims) AS s)), 'target', '')
                    WHEN NOT c.revert IN (SELECT s.value FROM json_each(c.statuses) AS s) THEN 'target'
                    WHEN c.side = 0 AND c.status <> c.revert AND c.claims IS NOT NULL AND NOT c.status IN (SELECT s.value FROM json_each(c.claims) AS s) THEN 'claim'
                    ELSE '' END AS wrong, c.*
          FROM (SELECT x.shard, x.workspace, x.lifecycle, x.id, x.version, x.side, x.status, x.phase, x.operation, x.revert, x.plan,
                       l.statuses, iif(l.wanted IS NULL, l.claims, NULL) AS claims
                  FROM holdfast_entity AS x
                  LEFT JOIN holdfast_lifecycle AS l ON l.shard = x.shard AND l.workspace = x.workspace AND l.name = x.lifecycle
                 WHERE (x.shard, x.workspace, x.lifecycle, x.id) > (:shard, :workspace, :lifecycle, :entity)
                 ORDER BY x.shard, x.workspace, x.lifecycle, x.id
                 LIMIT :limit) AS c) AS j
 WHERE j.wrong <> '' OR j.nth = j.size
 ORDER BY j.nth
