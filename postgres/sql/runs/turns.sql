-- In which workspaces steps of a handler are due, behind a workspace of each handler, and '' behind its last. The index is
-- read from one workspace to the next, however much is due in each.
-- :queues handlers as a JSON list of [handler, behind which workspace, the kind that it must be ('' for those of a
-- program)]; :except workspaces that are left out, as a JSON list
WITH RECURSIVE turn AS (
    SELECT q.item ->> 0 AS name, (q.item ->> 1) COLLATE pg_catalog."C" AS workspace, q.item ->> 2 AS kind, 0 AS nth
      FROM pg_catalog.jsonb_array_elements(:queues::jsonb) AS q(item)
    UNION ALL
    SELECT t.name,
           (SELECT s.workspace FROM {schema}.step s
             WHERE s.shard + 0 = :shard AND s.handler = t.name AND s.workspace > t.workspace AND (:workspace = '' OR s.workspace = :workspace)
               AND s.due_at <= (SELECT {now})
               AND (t.kind = '' OR EXISTS (SELECT 1 FROM {schema}.handler k WHERE k.shard = s.shard AND k.workspace = s.workspace AND k.name = s.handler AND k.kind = t.kind))
             ORDER BY s.workspace
             LIMIT 1), t.kind, t.nth + 1
      FROM turn t
     WHERE t.workspace IS NOT NULL
)
SELECT t.name, coalesce(t.workspace, '')
  FROM turn t
 WHERE t.nth > 0 AND NOT :except::jsonb ? coalesce(t.workspace, '')
 LIMIT :limit
