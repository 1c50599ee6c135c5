-- Where there may be something to do: reactions and workspaces that have streams that are due, behind a workspace of each
-- reaction, and '' behind its last. The index is read from one workspace to the next, however much is due in each.
-- ?1 shard, ?2 workspace ('' for all), ?3 reactions as a JSON list of [name, behind which workspace], ?4 limit, ?5 workspaces that are left out, as a JSON list
-- do
WITH RECURSIVE turn(name, workspace, nth) AS (
    SELECT q.value ->> 0, q.value ->> 1, 0 FROM json_each(?3) AS q
    UNION ALL
    SELECT t.name,
           (SELECT f.workspace FROM holdfast_follow AS f INDEXED BY holdfast_follow_ready
             WHERE f.shard = ?1 AND f.reaction = t.name AND f.workspace > t.workspace AND (?2 = '' OR f.workspace = ?2)
               AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark AND f.due_at <= {now}
             ORDER BY f.workspace
             LIMIT 1), t.nth + 1
      FROM turn AS t
     WHERE t.workspace IS NOT NULL
)
SELECT t.name, coalesce(t.workspace, '')
  FROM turn AS t
 WHERE t.nth > 0 AND coalesce(t.workspace, '') NOT IN (SELECT x.value FROM json_each(?5) AS x)
 LIMIT +?4
