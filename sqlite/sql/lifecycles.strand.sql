-- How many entities of a lifecycle a config has no place for, by status, and whether operations on them are under way. Of
-- those that are free: in a status that goes, or becomes a claim status, or is one no longer. Of those with an operation: in a status
-- that goes, or on the way to one that goes or becomes a claim status, or without a plan, so that the way is not known.
-- ?1 shard, ?2 workspace, ?3 lifecycle, ?4 statuses, ?5 claim statuses, ?6 statuses that become claim statuses or cease to be, JSON lists
-- do
SELECT s.place, s.open, count(*)
  FROM (SELECT e.phase <> 'free' AS open,
               CASE WHEN e.side = 0 AND (e.status NOT IN (SELECT x.value FROM json_each(?4) AS x)
                                         OR (e.phase = 'free' AND e.status IN (SELECT x.value FROM json_each(?6) AS x))) THEN e.status
                    WHEN e.phase = 'free' THEN NULL
                    WHEN e.plan ->> 'operation' = e.operation
                    THEN (SELECT p.value FROM json_each(json_array(e.revert, e.plan ->> 'success', e.plan ->> 'failed')) AS p
                           WHERE p.value NOT IN (SELECT x.value FROM json_each(?4) AS x) OR p.value IN (SELECT x.value FROM json_each(?5) AS x)
                           LIMIT 1)
                    ELSE e.status END AS place
          FROM holdfast_entity AS e
         WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?3) AS s
 WHERE s.place IS NOT NULL
 GROUP BY 1, 2
 ORDER BY 1, 2
