-- How many entities of a lifecycle are in a status that a list has not, or would go
-- back to one from their claim.
-- ?1 shard, ?2 workspace, ?3 lifecycle, ?4 statuses, a JSON list
-- do
SELECT CASE WHEN e.side OR e.status IN (SELECT s.value FROM json_each(?4) AS s) THEN e.revert ELSE e.status END, count(*)
  FROM holdfast_entity AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?3
   AND ((e.side = 0 AND e.status NOT IN (SELECT s.value FROM json_each(?4) AS s))
        OR (e.phase <> 'free' AND e.revert NOT IN (SELECT s.value FROM json_each(?4) AS s)))
 GROUP BY 1
 ORDER BY 1
