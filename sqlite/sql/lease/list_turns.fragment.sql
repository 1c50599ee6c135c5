-- Lists queues with the workspaces in which work is due for them, after the workspace given for each in :queues, and ''
-- after the last. {1} finds the next workspace after t.workspace that has anything for t.name, due or not, and {2} is true if
-- any of it is due. Each is a lookup, regardless of how much is due in a workspace, and of how much is not due yet.
-- :queues a JSON list of [name, after which workspace]; :except a JSON list of workspaces to leave out
WITH RECURSIVE turn(queue, name, workspace, nth) AS (
    SELECT q.value, q.value ->> 0, q.value ->> 1, 0 FROM json_each(:queues) AS q
    UNION ALL
    SELECT t.queue, t.name, {1}, t.nth + 1
      FROM turn AS t
     WHERE t.workspace IS NOT NULL
)
SELECT t.name, coalesce(t.workspace, '')
  FROM turn AS t
 WHERE t.nth > 0 AND coalesce(t.workspace, '') NOT IN (SELECT x.value FROM json_each(:except) AS x) AND (t.workspace IS NULL OR {2})
 LIMIT :limit
