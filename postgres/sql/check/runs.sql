-- Checks one page of runs. Returns those whose history has gaps, that have open steps other
-- than their current one, that are not finished and never become due again, that wait
-- although their signal has arrived, that are finished and have work left, or whose steps
-- count other effects than the journal has; and the last run of the page.
WITH page AS MATERIALIZED (
    SELECT x.shard, x.workspace, x.id, x.status, x.version, x.step, x.visit, x.cancel_requested
      FROM {schema}.run x
     WHERE (x.shard, x.workspace, x.id) > (:shard, :workspace, :run) AND x.id >= 'run_' -- not the keys of deleted runs (runs/delete)
     ORDER BY x.shard, x.workspace, x.id
     LIMIT :limit
)
SELECT j.nth, j.wrong <> '', j.shard, j.workspace, j.id, '', j.version, j.events, j.last, j.low, j.wrong
  FROM (SELECT pg_catalog.row_number() OVER (ORDER BY p.shard, p.workspace, p.id) AS nth, pg_catalog.count(*) OVER () AS size, p.shard, p.workspace, p.id, p.version,
               h.events AS events, coalesce(h.last, -1) AS last, coalesce(h.low, 0) AS low,
               CASE WHEN coalesce(h.last, -1) <> p.version OR h.events <> p.version - coalesce(h.low, 0) + 1 THEN 'versions'
                    WHEN s.here <> 1 OR s.elsewhere > 0 THEN 'steps'
                    WHEN p.status IN ('COMPLETED', 'FAILED', 'CANCELLED') AND (s.live > 0 OR s.awake > 0 OR a.pending > 0) THEN 'end'
                    WHEN p.status IN ('PENDING', 'RUNNING', 'WAITING') AND (s.live <> 1 OR s.stuck > 0) THEN 'stuck'
                    WHEN s.deaf > 0 THEN 'deaf'
                    WHEN p.status = 'PAUSED' AND (NOT p.cancel_requested AND s.due > 0 OR p.cancel_requested AND s.stuck > 0) THEN 'paused'
                    WHEN s.unlike > 0 THEN 'effects'
                    ELSE '' END AS wrong
          FROM page p
         CROSS JOIN LATERAL ( -- of all steps at once: a lookup for each step costs more than the rest of the check
               SELECT pg_catalog.jsonb_object_agg(e.operation, e.begun) AS begun
                 FROM (SELECT e.operation, pg_catalog.count(*) AS begun
                         FROM {schema}.effect e
                        WHERE e.shard = p.shard AND e.workspace = p.workspace AND e.operation >= p.id || '/' AND e.operation < p.id || '0' AND e.state <> 'notDone'
                        GROUP BY e.operation) AS e) AS o
         CROSS JOIN LATERAL (
               SELECT pg_catalog.count(*) FILTER (WHERE s.status IN ('PENDING', 'RUNNING', 'WAITING')) AS live,
                      pg_catalog.count(*) FILTER (WHERE s.name = p.step AND s.visit = p.visit) AS here,
                      pg_catalog.count(*) FILTER (WHERE s.status IN ('PENDING', 'RUNNING', 'WAITING') AND (s.name <> p.step OR s.visit <> p.visit)) AS elsewhere,
                      pg_catalog.count(*) FILTER (WHERE s.status IN ('PENDING', 'RUNNING', 'WAITING') AND s.holder IS NULL AND s.due_at IS NULL AND NOT s.uncertain
                                             AND NOT (s.status = 'WAITING' AND s.type IN ('event', 'approval') AND s.deadline IS NULL)) AS stuck,
                      pg_catalog.count(*) FILTER (WHERE s.holder IS NOT NULL OR s.due_at IS NOT NULL) AS awake,
                      pg_catalog.count(*) FILTER (WHERE s.due_at IS NOT NULL) AS due,
                      pg_catalog.count(*) FILTER (WHERE s.status = 'WAITING' AND (s.due_at IS NULL OR s.due_at > {now}) AND EXISTS (
                                             SELECT 1 FROM {schema}.signal g
                                              WHERE g.shard = s.shard AND g.workspace = s.workspace AND g.run = s.run AND g.type = s.signal AND g.taken IS NULL)) AS deaf,
                      pg_catalog.count(*) FILTER (WHERE s.begun <> coalesce((o.begun ->> (s.run || '/' || s.name || '/' || s.visit::text))::bigint, 0)) AS unlike
                 FROM {schema}.step s
                WHERE s.shard = p.shard AND s.workspace = p.workspace AND s.run = p.id) AS s
         CROSS JOIN LATERAL (
               SELECT pg_catalog.count(*) AS pending FROM {schema}.approval a
                WHERE a.shard = p.shard AND a.workspace = p.workspace AND a.run = p.id AND a.status = 'pending') AS a
         CROSS JOIN LATERAL (
               SELECT pg_catalog.count(*) AS events, pg_catalog.max(e.version) AS last, pg_catalog.min(e.version) AS low
                 FROM (SELECT h.version FROM {schema}.history h
                        WHERE h.shard = p.shard AND h.workspace = p.workspace AND h.stream = '$run/' || p.id
                        ORDER BY h.version) AS e) AS h) AS j
 WHERE j.wrong <> '' OR j.nth = j.size
 ORDER BY j.nth
