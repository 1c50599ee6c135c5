-- Lists the workspaces in which steps of a handler are due, after a workspace given for each handler, and '' after the last. The index
-- is read from one workspace to the next, regardless of how much is due in each.
-- :queues handlers as a JSON list of [handler, after which workspace, the required kind ('' for those of a
-- program)]; :except workspaces to leave out, as a JSON list
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
