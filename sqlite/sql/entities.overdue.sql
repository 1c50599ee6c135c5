-- Operations that have waited for a worker for longer than their step may take, the oldest first.
-- ?1 shard, ?2 workspace ('' for all), ?3 lifecycles as a JSON list, ?4 limit, ?5 how long those may wait whose plan is not known, in ms
-- do
SELECT e.workspace, e.lifecycle, e.id, e.epoch, e.begun, e.status, e.revert, e.operation, coalesce(e.step, ''), coalesce(e.requester, ''),
       '', e.claimed_at, e.side, coalesce(e.plan, ''), 0
  FROM holdfast_entity AS e INDEXED BY holdfast_entity_due
 WHERE e.shard = ?1 AND (?2 = '' OR e.workspace = ?2)
   AND e.lifecycle IN (SELECT l.value FROM json_each(?3) AS l) AND e.phase = 'due' AND e.queue IS NOT NULL
   AND e.due_at + coalesce(CASE WHEN e.plan ->> 'operation' = e.operation THEN e.plan ->> 'timeout' END, ?5) <= {now}
 ORDER BY e.due_at
 LIMIT +?4
