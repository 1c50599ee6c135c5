-- Checks one page of claims. Returns those whose count of effects that may have happened
-- differs from the journal, and those that were reverted although an effect may have
-- happened; and the last claim of the page.
SELECT j.nth, j.bad, j.shard, j.workspace, j.lifecycle, j.id, j.begun, j.effects, j.epoch
  FROM (SELECT {pg}row_number() OVER (ORDER BY c.shard, c.workspace, c.lifecycle, c.id) AS nth, {pg}count(*) OVER () AS size,
               CASE WHEN c.phase = 'free' THEN c.effects > 0 AND c.outcome NOT IN ('success', 'resolved') ELSE c.effects <> c.begun END AS bad, c.*
          FROM (SELECT x.shard, x.workspace, x.lifecycle, x.id, x.phase, coalesce(x.outcome, '') AS outcome, x.begun, x.epoch,
                       (SELECT {pg}count(*) FROM {schema}.effect AS f
                         WHERE f.shard = x.shard AND f.workspace = x.workspace AND f.operation = x.operation AND f.state <> 'notDone') AS effects
                  FROM {schema}.entity AS x
                 WHERE (x.shard, x.workspace, x.lifecycle, x.id) > (:shard, :workspace, :lifecycle, :entity) AND x.operation IS NOT NULL
                 ORDER BY x.shard, x.workspace, x.lifecycle, x.id
                 LIMIT :limit) AS c) AS j
 WHERE j.bad OR j.nth = j.size
 ORDER BY j.nth
