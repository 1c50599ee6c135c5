-- Names of queues and the workspaces in which {1} finds something for them, behind the workspace of each in :queues,
-- and '' behind the last. The index is read from one workspace to the next, however much is due in each.
-- :queues a JSON list of [name, behind which workspace]; :except a JSON list of workspaces that are left out
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
