-- Operations that have waited for a worker for longer than their step may take, the oldest first.
-- $1 shard, $2 workspace ('' for all), $3 lifecycles as a JSON list, $4 limit, $5 how long those may wait whose plan is not known, in ms
SELECT e.workspace, e.lifecycle, e.id, e.epoch, e.begun, e.status, e.revert, e.operation, coalesce(e.step, ''), coalesce(e.requester, ''),
       '', e.claimed_at, e.side, coalesce(e.plan::text, ''), 0
  FROM {schema}.entity e
 WHERE e.shard + 0 = $1::smallint AND ($2::text = '' OR e.workspace = $2::text)
   AND $3::text::jsonb ? e.lifecycle AND e.phase = 'due'
   AND coalesce(e.queue, 'l:' || e.lifecycle) >= 'h:' AND coalesce(e.queue, 'l:' || e.lifecycle) < 'h;' -- those that wait for a worker
   AND e.due_at + coalesce(CASE WHEN e.plan ->> 'operation'::text = e.operation THEN (e.plan ->> 'timeout'::text)::bigint END, $5::bigint)::float8 * interval '1 ms' <= {now}
 ORDER BY e.due_at
 LIMIT $4::bigint
