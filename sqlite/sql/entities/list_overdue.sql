-- Lists operations that have waited for a worker longer than their step allows, the oldest first.
SELECT e.workspace, e.lifecycle, e.id, e.epoch, e.begun, e.status, e.revert, e.operation, coalesce(e.step, ''), coalesce(e.requester, ''),
       '', e.claimed_at, e.side, coalesce(e.plan, ''), 0
  FROM holdfast_entity AS e INDEXED BY holdfast_entity_due
 WHERE e.shard = :shard AND (:workspace = '' OR e.workspace = :workspace)
   AND e.lifecycle IN (SELECT l.value FROM json_each(:lifecycles) AS l) AND e.phase = 'due' AND e.queue IS NOT NULL
   AND e.due_at + coalesce(CASE WHEN e.plan ->> 'operation' = e.operation THEN e.plan ->> 'timeout' END, :wait) <= {now}
 ORDER BY e.due_at
 LIMIT :limit
