-- Lists the workspaces in which operations of a queue are due.
{include lease/list_turns
    (SELECT e.workspace FROM holdfast_entity AS e INDEXED BY holdfast_entity_turn
      WHERE e.shard = :shard AND coalesce(e.queue, 'l:' || e.lifecycle) = t.name AND e.workspace > t.workspace AND (:workspace = '' OR e.workspace = :workspace)
        AND e.phase = 'due'
      ORDER BY e.workspace
      LIMIT 1);
    EXISTS (SELECT 1 FROM holdfast_entity AS e INDEXED BY holdfast_entity_turn
             WHERE e.shard = :shard AND coalesce(e.queue, 'l:' || e.lifecycle) = t.name AND e.workspace = t.workspace AND e.phase = 'due' AND e.due_at <= {now})}
