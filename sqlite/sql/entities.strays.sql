-- A page of entities, behind one, with those that are in a claim status although
-- nobody has claimed them. The last row says how far the page went.
-- ?1 shard, ?2 workspace ('' for all), ?3 lifecycles as a JSON object of lists of claim statuses, ?4 behind which workspace, ?5 lifecycle,
-- ?6 entity, ?7 limit
-- do
WITH page AS MATERIALIZED (
    SELECT e.workspace, e.lifecycle, e.id, e.status, e.phase, e.side
      FROM holdfast_entity AS e
     WHERE e.shard = ?1 AND (?2 = '' OR e.workspace = ?2)
       AND (e.workspace, e.lifecycle, e.id) > (?4, ?5, ?6)
     ORDER BY e.workspace, e.lifecycle, e.id
     LIMIT +?7
)
SELECT p.workspace, p.lifecycle, p.id, p.status FROM page AS p
 WHERE p.phase = 'free' AND p.side = 0
   AND EXISTS (SELECT 1 FROM json_each(?3) AS l JOIN json_each(l.value) AS s WHERE l.key = p.lifecycle AND s.value = p.status)
UNION ALL
SELECT * FROM (SELECT p.workspace, p.lifecycle, p.id, '' FROM page AS p ORDER BY p.workspace DESC, p.lifecycle DESC, p.id DESC LIMIT 1)
