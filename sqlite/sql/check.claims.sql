-- Judges claims, a page at a time: answers those whose count of effects that may have
-- happened is not what the journal says, and those that went back although one may
-- have; and the last of the page.
-- after: ?1 shard, ?2 workspace, ?3 lifecycle, ?4 entity; ?5 page
-- do
SELECT j.nth, j.bad, j.shard, j.workspace, j.lifecycle, j.id, j.begun, j.effects, j.epoch
  FROM (SELECT row_number() OVER (ORDER BY c.shard, c.workspace, c.lifecycle, c.id) AS nth, count(*) OVER () AS size,
               CASE WHEN c.phase = 'free' THEN c.effects > 0 AND c.outcome NOT IN ('success', 'resolved') ELSE c.effects <> c.begun END AS bad, c.*
          FROM (SELECT x.shard, x.workspace, x.lifecycle, x.id, x.phase, coalesce(x.outcome, '') AS outcome, x.begun, x.epoch,
                       (SELECT count(*) FROM holdfast_effect AS f
                         WHERE f.shard = x.shard AND f.workspace = x.workspace AND f.operation = x.operation AND f.state <> 'notDone') AS effects
                  FROM holdfast_entity AS x
                 WHERE (x.shard, x.workspace, x.lifecycle, x.id) > (?1, ?2, ?3, ?4) AND x.operation IS NOT NULL
                 ORDER BY x.shard, x.workspace, x.lifecycle, x.id
                 LIMIT +?5) AS c) AS j
 WHERE j.bad OR j.nth = j.size
 ORDER BY j.nth
