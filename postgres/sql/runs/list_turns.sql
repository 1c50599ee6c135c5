-- Lists the workspaces in which steps of a handler are due.
-- :queues handlers as a JSON list of [handler, after which workspace, the required kind ('' for those of a program)]
{include lease/list_turns
    (SELECT s.workspace FROM {schema}.step s
      WHERE s.shard + 0 = :shard AND s.handler = t.name AND s.workspace > t.workspace AND (:workspace = '' OR s.workspace = :workspace)
        AND s.due_at IS NOT NULL
      ORDER BY s.workspace
      LIMIT 1);
    (SELECT true FROM {schema}.step s
      WHERE s.shard + 0 = :shard AND s.handler = t.name AND s.workspace = t.workspace AND s.due_at <= (SELECT {now})
      ORDER BY s.due_at
      LIMIT 1)
    AND (t.queue ->> 2 = ''::text OR (SELECT k.kind = t.queue ->> 2 FROM {schema}.handler k WHERE k.shard = :shard AND k.workspace = t.workspace AND k.name = t.name))}
