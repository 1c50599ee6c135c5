-- Lists operations that have waited for a worker longer than their step allows, the oldest first.
-- :lifecycles a JSON list; :wait the limit for operations whose plan is not known, in ms
SELECT e.workspace, e.lifecycle, e.id, e.epoch, e.begun, e.status, e.revert, e.operation, coalesce(e.step, ''), coalesce(e.requester, ''),
       '', e.claimed_at, e.side, coalesce(e.plan::text, ''), 0
  FROM {schema}.entity e
 WHERE e.shard + 0 = :shard AND (:workspace = '' OR e.workspace = :workspace)
   AND :lifecycles::jsonb ? e.lifecycle AND e.phase = 'due'
   AND coalesce(e.queue, 'l:' || e.lifecycle) >= 'h:' AND coalesce(e.queue, 'l:' || e.lifecycle) < 'h;' -- operations that wait for a worker
   AND e.due_at <= (SELECT {now}) -- leaves those that wait for a retry to the index
   AND e.due_at + coalesce(CASE WHEN e.plan ->> 'operation'::text = e.operation THEN (e.plan ->> 'timeout'::text)::bigint END, :wait)::float8 * interval '1 ms' <= {now}
 ORDER BY e.due_at
 LIMIT :limit
