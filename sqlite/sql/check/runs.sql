-- Checks one page of runs. Returns those whose history has gaps, that have open steps other than their current one, that are not
-- finished and never become due again, that wait although their signal has arrived, that are finished and have work left, or whose steps
-- count other effects than the journal has; and the last run of the page. All is looked up run by run (CROSS JOIN keeps that order): a
-- range from the first run of the page to the last is bounded at one end only, and reads the rest of the table for each page.
WITH page AS MATERIALIZED (
    SELECT x.shard, x.workspace, x.id, x.status, x.version, x.step, x.visit, x.cancel_requested
      FROM holdfast_run AS x
     WHERE (x.shard, x.workspace, x.id) > (:shard, :workspace, :run) AND x.id >= 'run_' -- not the keys of deleted runs (runs/delete)
     ORDER BY x.shard, x.workspace, x.id
     LIMIT :limit
), journal AS MATERIALIZED (
    SELECT e.shard, e.workspace, e.operation, count(*) AS begun
      FROM page AS p CROSS JOIN holdfast_effect AS e
     WHERE e.shard = p.shard AND e.workspace = p.workspace AND e.operation >= p.id || '/' AND e.operation < p.id || '0' AND e.state <> 'notDone'
     GROUP BY e.shard, e.workspace, e.operation
), steps AS MATERIALIZED (
    SELECT p.shard, p.workspace, p.id, count(*) FILTER (WHERE s.status IN ('PENDING', 'RUNNING', 'WAITING')) AS live,
           count(*) FILTER (WHERE s.name = p.step AND s.visit = p.visit) AS here,
           count(*) FILTER (WHERE s.status IN ('PENDING', 'RUNNING', 'WAITING') AND (s.name <> p.step OR s.visit <> p.visit)) AS elsewhere,
           count(*) FILTER (WHERE s.status IN ('PENDING', 'RUNNING', 'WAITING') AND s.holder IS NULL AND s.due_at IS NULL AND NOT s.uncertain
                                  AND NOT (s.status = 'WAITING' AND s.type IN ('event', 'approval') AND s.deadline IS NULL)) AS stuck,
           count(*) FILTER (WHERE s.holder IS NOT NULL OR s.due_at IS NOT NULL) AS awake,
           count(*) FILTER (WHERE s.due_at IS NOT NULL) AS due,
           count(*) FILTER (WHERE s.status = 'WAITING' AND (s.due_at IS NULL OR s.due_at > {now}) AND EXISTS (
                                  SELECT 1 FROM holdfast_signal AS g
                                   WHERE g.shard = s.shard AND g.workspace = s.workspace AND g.run = s.run AND g.type = s.signal AND g.taken IS NULL)) AS deaf,
           count(*) FILTER (WHERE s.begun <> coalesce(j.begun, 0)) AS unlike
      FROM page AS p CROSS JOIN holdfast_step AS s ON s.shard = p.shard AND s.workspace = p.workspace AND s.run = p.id
      LEFT JOIN journal AS j ON j.shard = s.shard AND j.workspace = s.workspace AND j.operation = s.run || '/' || s.name || '/' || s.visit
     GROUP BY p.shard, p.workspace, p.id
), asked AS MATERIALIZED (
    SELECT p.shard, p.workspace, p.id, count(*) AS pending
      FROM page AS p CROSS JOIN holdfast_approval AS a ON a.shard = p.shard AND a.workspace = p.workspace AND a.run = p.id AND a.status = 'pending'
     GROUP BY p.shard, p.workspace, p.id
), heads AS MATERIALIZED (
    SELECT p.shard, p.workspace, p.id, count(*) AS events, max(h.version) AS last, min(h.version) AS low
      FROM page AS p CROSS JOIN holdfast_history AS h
     WHERE h.shard = p.shard AND h.workspace = p.workspace AND h.stream = '$run/' || p.id
     GROUP BY p.shard, p.workspace, p.id
)
SELECT j.nth, j.wrong <> '', j.shard, j.workspace, j.id, '', j.version, j.events, j.last, j.low, j.wrong
  FROM (SELECT row_number() OVER (ORDER BY p.shard, p.workspace, p.id) AS nth, count(*) OVER () AS size, p.shard, p.workspace, p.id, p.version,
               coalesce(h.events, 0) AS events, coalesce(h.last, -1) AS last, coalesce(h.low, 0) AS low,
               CASE WHEN coalesce(h.last, -1) <> p.version OR coalesce(h.events, 0) <> p.version - coalesce(h.low, 0) + 1 THEN 'versions'
                    WHEN coalesce(s.here, 0) <> 1 OR s.elsewhere > 0 THEN 'steps'
                    WHEN p.status IN ('COMPLETED', 'FAILED', 'CANCELLED') AND (s.live > 0 OR s.awake > 0 OR coalesce(a.pending, 0) > 0) THEN 'end'
                    WHEN p.status IN ('PENDING', 'RUNNING', 'WAITING') AND (s.live <> 1 OR s.stuck > 0) THEN 'stuck'
                    WHEN s.deaf > 0 THEN 'deaf'
                    WHEN p.status = 'PAUSED' AND (NOT p.cancel_requested AND s.due > 0 OR p.cancel_requested AND s.stuck > 0) THEN 'paused'
                    WHEN s.unlike > 0 THEN 'effects'
                    ELSE '' END AS wrong
          FROM page AS p
          LEFT JOIN steps AS s ON s.shard = p.shard AND s.workspace = p.workspace AND s.id = p.id
          LEFT JOIN asked AS a ON a.shard = p.shard AND a.workspace = p.workspace AND a.id = p.id
          LEFT JOIN heads AS h ON h.shard = p.shard AND h.workspace = p.workspace AND h.id = p.id) AS j
 WHERE j.wrong <> '' OR j.nth = j.size
 ORDER BY j.nth
