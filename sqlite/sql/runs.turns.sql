-- In which workspaces steps of a handler are due, behind a workspace of each handler, and '' behind its last. The index is
-- read from one workspace to the next, however much is due in each.
-- ?1 shard, ?2 workspace ('' for all), ?3 handlers as a JSON list of [handler, behind which workspace, the kind that it must be ('' for those of a program)], ?4 limit, ?5 workspaces that are left out, as a JSON list
-- do
WITH RECURSIVE turn(name, workspace, kind, nth) AS (
    SELECT q.value ->> 0, q.value ->> 1, q.value ->> 2, 0 FROM json_each(?3) AS q
    UNION ALL
    SELECT t.name,
           (SELECT s.workspace FROM holdfast_step AS s INDEXED BY holdfast_step_turn
             WHERE s.shard = ?1 AND s.handler = t.name AND s.workspace > t.workspace AND (?2 = '' OR s.workspace = ?2)
               AND s.due_at IS NOT NULL AND s.due_at <= {now}
               AND (t.kind = '' OR EXISTS (SELECT 1 FROM holdfast_handler AS k WHERE k.shard = s.shard AND k.workspace = s.workspace AND k.name = s.handler AND k.kind = t.kind))
             ORDER BY s.workspace
             LIMIT 1), t.kind, t.nth + 1
      FROM turn AS t
     WHERE t.workspace IS NOT NULL
)
SELECT t.name, coalesce(t.workspace, '')
  FROM turn AS t
 WHERE t.nth > 0 AND coalesce(t.workspace, '') NOT IN (SELECT x.value FROM json_each(?5) AS x)
 LIMIT +?4
