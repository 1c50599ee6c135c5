-- Takes due operations, of each queue in a workspace the longest due first. Increments the
-- epoch, and sets due_at to the time of the take. Skips rows that others are taking. Each
-- queue is read in the order of its index, up to the limit, and the locked rows are found
-- again by their ctid. The planner knows neither how small the limit is nor how large the
-- table will be when the plan is used, and would join the whole table; so the statement has
-- conditions that always hold and that the planner estimates as rare. A row that was changed
-- a moment ago is not found by its ctid, and stays for the next take.
-- :queues a JSON list of [queue, lease in ms, workspace]; :quiet whether the holder is remote and has not reported
-- yet
WITH due AS MATERIALIZED (
    SELECT d.shard, d.workspace, d.place, d.lease
      FROM pg_catalog.jsonb_array_elements(:queues::jsonb) AS q(item)
     CROSS JOIN LATERAL (
           SELECT x.shard, x.workspace, x.ctid AS place, (q.item ->> 1)::bigint AS lease
             FROM {schema}.entity x
            WHERE 0 + x.shard = :shard AND (:workspace = '' OR x.workspace = :workspace) AND coalesce(x.queue, 'l:' || x.lifecycle) = q.item ->> 0
              AND x.workspace = q.item ->> 2 AND x.phase = 'due' AND x.due_at <= (SELECT {now})
            ORDER BY x.due_at
            LIMIT :limit
              FOR UPDATE SKIP LOCKED) AS d
     WHERE pg_catalog.jsonb_typeof(q.item) = 'array' AND d.shard + 0 = :shard -- tells the planner that there are few rows
     LIMIT :limit
)
UPDATE {schema}.entity e
   SET phase = 'held', holder = :holder, epoch = e.epoch + 1, quiet = :quiet = 1, due_at = {now}, until = {now} + due.lease::float8 * interval '1 ms'
  FROM due
 WHERE e.ctid = due.place AND e.shard = due.shard AND e.workspace = due.workspace AND e.phase = 'due'
RETURNING e.workspace, e.lifecycle, e.id, coalesce(e.stage, ''), coalesce(e.plan::text, ''), {include entities/result_columns e}
