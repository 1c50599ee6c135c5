-- Lists the workspaces in which operations of a queue are due.
{include lease/list_turns
    (SELECT e.workspace FROM {schema}.entity e
     WHERE e.shard + 0 = :shard AND coalesce(e.queue, 'l:' || e.lifecycle) = t.name AND e.workspace > t.workspace AND (:workspace = '' OR e.workspace = :workspace)
       AND e.phase = 'due' AND e.due_at <= (SELECT {now})
     ORDER BY e.workspace
     LIMIT 1)}
