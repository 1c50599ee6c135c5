-- Returns, of one page of entities, those that are in a claim status without a claim.
WITH page AS MATERIALIZED (
    SELECT e.workspace, e.lifecycle, e.id, e.status, e.phase, e.side
      FROM holdfast_entity AS e
     WHERE e.shard = :shard AND (:workspace = '' OR e.workspace = :workspace)
       AND (e.workspace, e.lifecycle, e.id) > (:after_workspace, :after_lifecycle, :after_entity)
     ORDER BY e.workspace, e.lifecycle, e.id
     LIMIT :limit
)
SELECT p.workspace, p.lifecycle, p.id, p.status FROM page AS p
 WHERE p.phase = 'free' AND p.side = 0
   AND EXISTS (SELECT 1 FROM json_each(:lifecycles) AS l JOIN json_each(l.value) AS s WHERE l.key = p.lifecycle AND s.value = p.status)
UNION ALL
SELECT * FROM (SELECT p.workspace, p.lifecycle, p.id, '' FROM page AS p ORDER BY p.workspace DESC, p.lifecycle DESC, p.id DESC LIMIT 1)
