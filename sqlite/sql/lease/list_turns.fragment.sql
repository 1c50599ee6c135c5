-- Lists queues with the workspaces in which {1} finds work for them, after the workspace given for each in :queues,
-- and '' after the last. The index is read from one workspace to the next, regardless of how much is due in each.
-- :queues a JSON list of [name, after which workspace]; :except a JSON list of workspaces to leave out
WITH RECURSIVE turn(name, workspace, nth) AS (
    SELECT q.value ->> 0, q.value ->> 1, 0 FROM json_each(:queues) AS q
    UNION ALL
    SELECT t.name, {1}, t.nth + 1
      FROM turn AS t
     WHERE t.workspace IS NOT NULL
)
SELECT t.name, coalesce(t.workspace, '')
  FROM turn AS t
 WHERE t.nth > 0 AND coalesce(t.workspace, '') NOT IN (SELECT x.value FROM json_each(:except) AS x)
 LIMIT :limit
