-- Leases the longest due, and skips what others are leasing. The limit is no
-- argument: a plan for any number would read the whole table.
-- $1 shard, $2 workspace, $3 queue, $4 holder, $5 lease in ms
WITH due AS (
    SELECT k.shard, k.workspace, k.queue, k.id
      FROM {schema}.task k
     WHERE k.shard = $1::smallint AND k.workspace = $2::text AND k.queue = $3::text
       AND k.state = 'due' AND k.holder IS NULL AND k.due_at <= clock_timestamp()
     ORDER BY k.due_at
     LIMIT 100
       FOR UPDATE SKIP LOCKED
)
UPDATE {schema}.task k
   SET holder = $4::text, epoch = k.epoch + 1, until = clock_timestamp() + $5::bigint * interval '1 ms'
  FROM due
 WHERE k.shard = due.shard AND k.workspace = due.workspace AND k.queue = due.queue AND k.id = due.id
RETURNING k.queue, k.id, k.epoch, k.until, k.input::text
