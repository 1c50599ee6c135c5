-- Lists queues with the workspaces in which {1} finds work for them, after the workspace given for each in :queues,
-- and '' after the last. The index is read from one workspace to the next, regardless of how much is due in each.
-- :queues a JSON list of [name, after which workspace]; :except a JSON list of workspaces to leave out
WITH RECURSIVE turn AS (
    SELECT q.item ->> 0 AS name, (q.item ->> 1) COLLATE pg_catalog."C" AS workspace, 0 AS nth
      FROM pg_catalog.jsonb_array_elements(:queues::jsonb) AS q(item)
    UNION ALL
    SELECT t.name, {1}, t.nth + 1
      FROM turn t
     WHERE t.workspace IS NOT NULL
)
SELECT t.name, coalesce(t.workspace, '')
  FROM turn t
 WHERE t.nth > 0 AND NOT :except::jsonb ? coalesce(t.workspace, '')
 LIMIT :limit
