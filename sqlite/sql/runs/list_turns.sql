-- Lists the workspaces in which steps of a handler are due, after a workspace given for each handler, and '' after the last.
WITH RECURSIVE turn(name, workspace, kind, nth) AS (
    SELECT q.value ->> 0, q.value ->> 1, q.value ->> 2, 0 FROM json_each(:queues) AS q
    UNION ALL
    SELECT t.name,
           (SELECT s.workspace FROM holdfast_step AS s INDEXED BY holdfast_step_turn
             WHERE s.shard = :shard AND s.handler = t.name AND s.workspace > t.workspace AND (:workspace = '' OR s.workspace = :workspace)
               AND s.due_at IS NOT NULL AND s.due_at <= {now}
               AND (t.kind = '' OR EXISTS (SELECT 1 FROM holdfast_handler AS k WHERE k.shard = s.shard AND k.workspace = s.workspace AND k.name = s.handler AND k.kind = t.kind))
             ORDER BY s.workspace
             LIMIT 1), t.kind, t.nth + 1
      FROM turn AS t
     WHERE t.workspace IS NOT NULL
)
SELECT t.name, coalesce(t.workspace, '')
  FROM turn AS t
 WHERE t.nth > 0 AND coalesce(t.workspace, '') NOT IN (SELECT x.value FROM json_each(:except) AS x)
 LIMIT :limit
