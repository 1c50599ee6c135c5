-- Checks one page of signals that no step has taken. Returns those that the current step of
-- the run waits for although the step is not due, and the last signal of the page.
SELECT j.nth, j.missed, j.workspace, j.run, j.type, j.n
  FROM (SELECT pg_catalog.row_number() OVER (ORDER BY g.workspace, g.run, g.type, g.n) AS nth, pg_catalog.count(*) OVER () AS size, g.workspace, g.run, g.type, g.n,
               EXISTS (SELECT 1
                         FROM {schema}.run r
                        CROSS JOIN LATERAL (
                              SELECT s.status, s.signal, s.due_at FROM {schema}.step s
                               WHERE s.shard = r.shard AND s.workspace = r.workspace AND s.run = r.id AND s.name = r.step AND s.visit = r.visit
                               LIMIT 1) AS s
                        WHERE r.shard = g.shard AND r.workspace = g.workspace AND r.id = g.run
                          AND s.status = 'WAITING' AND s.signal = g.type AND (s.due_at IS NULL OR s.due_at > {now})) AS missed
          FROM (SELECT x.shard, x.workspace, x.run, x.type, x.n
                  FROM {schema}.signal x
                 WHERE x.shard = :shard AND (:workspace = '' OR x.workspace = :workspace) AND x.taken IS NULL
                   AND (x.workspace, x.run, x.type, x.n) > (:after_workspace, :after_run, :after_type, :after_n)
                 ORDER BY x.workspace, x.run, x.type, x.n
                 LIMIT :limit) AS g) AS j
 WHERE j.missed OR j.nth = j.size
 ORDER BY j.nth
