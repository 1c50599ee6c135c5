-- In which workspaces there are items to clean up after, behind a workspace, and '' behind the last. The index is read from
-- one workspace to the next, however many there are in each.
-- ?1 shard, ?2 workspace ('' for all), ?3 a JSON list of [name, behind which workspace], ?4 limit, ?5 workspaces that are left out, as a JSON list
-- do
WITH RECURSIVE turn(name, workspace, nth) AS (
    SELECT q.value ->> 0, q.value ->> 1, 0 FROM json_each(?3) AS q
    UNION ALL
    SELECT t.name,
           (SELECT i.workspace FROM holdfast_item AS i INDEXED BY holdfast_item_turn
             WHERE i.shard = ?1 AND i.workspace > t.workspace AND (?2 = '' OR i.workspace = ?2)
               AND i.sweep_at IS NOT NULL AND i.sweep_at <= {now}
             ORDER BY i.workspace
             LIMIT 1), t.nth + 1
      FROM turn AS t
     WHERE t.workspace IS NOT NULL
)
SELECT t.name, coalesce(t.workspace, '')
  FROM turn AS t
 WHERE t.nth > 0 AND coalesce(t.workspace, '') NOT IN (SELECT x.value FROM json_each(?5) AS x)
 LIMIT +?4
