-- Lists the workspaces in which operations of a queue are due.
{include lease/list_turns
    (SELECT e.workspace FROM {schema}.entity e
      WHERE 0 + e.shard = :shard AND coalesce(e.queue, 'l:' || e.lifecycle) = t.name AND e.workspace > t.workspace AND (:workspace = '' OR e.workspace = :workspace)
        AND e.phase = 'due'
      ORDER BY e.workspace
      LIMIT 1);
    (SELECT true FROM {schema}.entity e
      WHERE 0 + e.shard = :shard AND coalesce(e.queue, 'l:' || e.lifecycle) = t.name AND e.workspace = t.workspace
        AND e.phase = 'due' AND e.due_at <= (SELECT {now})
      ORDER BY e.due_at
      LIMIT 1)}
