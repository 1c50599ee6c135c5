-- Lists queues with the workspaces in which work is due for them, after the workspace given for each in :queues, and ''
-- after the last. {1} finds the next workspace after t.workspace that has anything for t.name, due or not, and {2} is true if
-- any of it is due. Each is a lookup, regardless of how much is due in a workspace, and of how much is not due yet.
-- :queues a JSON list of [name, after which workspace]; :except a JSON list of workspaces to leave out
WITH RECURSIVE turn AS (
    SELECT q.item AS queue, q.item ->> 0 AS name, (q.item ->> 1) COLLATE pg_catalog."C" AS workspace, 0 AS nth
      FROM pg_catalog.jsonb_array_elements(:queues::jsonb) AS q(item)
    UNION ALL
    SELECT t.queue, t.name, {1}, t.nth + 1
      FROM turn t
     WHERE t.workspace IS NOT NULL
)
SELECT t.name, coalesce(t.workspace, '')
  FROM turn t
 WHERE t.nth > 0 AND NOT :except::jsonb ? coalesce(t.workspace, '') AND (t.workspace IS NULL OR {2})
 LIMIT :limit
