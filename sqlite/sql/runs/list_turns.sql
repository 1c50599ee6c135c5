-- Lists the workspaces in which steps of a handler are due.
{include lease/list_turns
    (SELECT s.workspace FROM holdfast_step AS s INDEXED BY holdfast_step_turn
      WHERE s.shard = :shard AND s.handler = t.name AND s.workspace > t.workspace AND (:workspace = '' OR s.workspace = :workspace)
        AND s.due_at IS NOT NULL
      ORDER BY s.workspace
      LIMIT 1);
    EXISTS (SELECT 1 FROM holdfast_step AS s INDEXED BY holdfast_step_turn
             WHERE s.shard = :shard AND s.handler = t.name AND s.workspace = t.workspace AND s.due_at IS NOT NULL AND s.due_at <= {now})
    AND (t.queue ->> 2 = '' OR EXISTS (SELECT 1 FROM holdfast_handler AS k WHERE k.shard = :shard AND k.workspace = t.workspace AND k.name = t.name AND k.kind = t.queue ->> 2))}
