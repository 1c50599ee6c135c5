-- Takes due tasks, the longest due first, of one workspace or of all. Taking
-- adds one to the epoch. What others are taking is skipped.
-- $1 shard, $2 workspace ('' for all), $3 queues as a JSON list, $4 holder,
-- $5 lease in ms, $6 limit
WITH due AS (
    SELECT k.shard, k.workspace, k.queue, k.id
      FROM {schema}.task k
     WHERE k.shard = $1::smallint AND ($2::text = '' OR k.workspace = $2::text)
       AND k.queue = ANY (ARRAY(SELECT jsonb_array_elements_text($3::text::jsonb)))
       AND k.state = 'due' AND k.holder IS NULL AND k.due_at <= {now}
     ORDER BY k.due_at
     LIMIT $6::bigint
       FOR UPDATE SKIP LOCKED
)
UPDATE {schema}.task k
   SET holder = $4::text, epoch = k.epoch + 1, until = {now} + $5::bigint * interval '1 ms'
  FROM due
 WHERE k.shard = due.shard AND k.workspace = due.workspace AND k.queue = due.queue AND k.id = due.id
   AND k.state = 'due' AND k.holder IS NULL
RETURNING k.workspace, k.queue, k.id, k.input::text, k.epoch, k.until, k.failures, k.deaths
