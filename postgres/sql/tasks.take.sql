-- Takes due tasks, the longest due first, of one workspace or of all. Taking
-- adds one to the epoch. What others are taking is skipped. Each queue is read
-- in the order of its index, as far as the limit; and the rows that were locked
-- are found again by their place. The planner, who does not know how small the
-- limit is, nor how much the table will have grown when the plan is used, would
-- join the whole table; so it is told conditions that always hold, which it takes
-- for rare. A row that was
-- changed a moment ago is not found that way, and stays for the next take.
-- $1 shard, $2 workspace ('' for all), $3 queues as a JSON list, $4 holder,
-- $5 lease in ms, $6 limit
WITH due AS MATERIALIZED (
    SELECT d.shard, d.workspace, d.place
      FROM jsonb_array_elements($3::text::jsonb) AS q(item)
     CROSS JOIN LATERAL (
           SELECT k.shard, k.workspace, k.due_at, k.ctid AS place
             FROM {schema}.task k
            WHERE k.shard = $1::smallint AND ($2::text = '' OR k.workspace = $2::text)
              AND k.queue = q.item #>> '{}'
              AND k.state = 'due' AND k.holder IS NULL AND k.due_at <= {now}
            ORDER BY k.due_at
            LIMIT $6::bigint
              FOR UPDATE SKIP LOCKED) d
     WHERE jsonb_typeof(q.item) = 'string' AND d.shard + 0 = $1 -- few, for the planner
     ORDER BY d.due_at
     LIMIT $6::bigint
)
UPDATE {schema}.task k
   SET holder = $4::text, epoch = k.epoch + 1, until = {now} + $5::bigint * interval '1 ms'
  FROM due
 WHERE k.ctid = due.place AND k.shard = due.shard AND k.workspace = due.workspace
   AND k.holder IS NULL
RETURNING k.workspace, k.queue, k.id, k.input::text, k.epoch, k.until, k.failures, k.deaths
