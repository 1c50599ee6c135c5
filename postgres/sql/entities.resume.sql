-- Takes operations that are due, of each queue in a workspace the longest due first.
-- Taking adds one to the epoch; due_at is then when it was taken. What others are
-- taking is skipped. Each queue is read in the order of its index, as far as the limit;
-- and the rows that were locked are found again by their place. The planner, who does
-- not know how small the limit is, nor how much the table will have grown when the plan
-- is used, would join the whole table; so it is told conditions that always hold, which
-- it takes for rare. A row that was changed a moment ago is not found that way, and
-- stays for the next take.
-- $1 shard, $2 workspace ('' for all), $3 queues as a JSON list of [queue, lease in ms, workspace], $4 holder, $5 limit,
-- $6 whether the holder is elsewhere, and quiet until it is heard of
WITH due AS MATERIALIZED (
    SELECT d.shard, d.workspace, d.place, d.lease
      FROM pg_catalog.jsonb_array_elements($3::text::jsonb) AS q(item)
     CROSS JOIN LATERAL (
           SELECT x.shard, x.workspace, x.ctid AS place, (q.item ->> 1)::bigint AS lease
             FROM {schema}.entity x
            WHERE x.shard + 0 = $1::smallint AND ($2::text = '' OR x.workspace = $2::text) AND coalesce(x.queue, 'l:' || x.lifecycle) = q.item ->> 0
              AND x.workspace >= q.item ->> 2 AND x.workspace <= q.item ->> 2 AND x.phase = 'due' AND x.due_at <= (SELECT {now})
            ORDER BY x.workspace, x.due_at -- by the index that has this order
            LIMIT $5::bigint
              FOR UPDATE SKIP LOCKED) AS d
     WHERE pg_catalog.jsonb_typeof(q.item) = 'array' AND d.shard + 0 = $1 -- few, for the planner
     LIMIT $5::bigint
)
UPDATE {schema}.entity e
   SET phase = 'held', holder = $4::text, epoch = e.epoch + 1, quiet = $6::bigint = 1, due_at = {now}, until = {now} + due.lease::float8 * interval '1 ms'
  FROM due
 WHERE e.ctid = due.place AND e.shard = due.shard AND e.workspace = due.workspace AND e.phase = 'due'
RETURNING e.workspace, e.lifecycle, e.id, coalesce(e.stage, ''), coalesce(e.plan::text, ''), coalesce(e.status, ''), coalesce(e.version, -1), coalesce(e.data, 'null')::text, coalesce(e.created_at, 'epoch'),
          coalesce(e.updated_at, 'epoch'), coalesce(e.phase, 'free'), coalesce(e.operation, ''),
          coalesce(e.step, ''), coalesce(e.requester, ''), coalesce(e.revert, ''), coalesce(e.input::text, ''),
          coalesce(e.holder, ''), coalesce(e.epoch, 0), coalesce(e.until, 'epoch'), coalesce(e.claimed_at, 'epoch'),
          coalesce(e.begun, 0), coalesce(e.failures, 0), coalesce(e.deaths, 0), coalesce(e.error, ''),
          coalesce(e.outcome, ''), coalesce(e.manual, false)
