-- Takes due tasks, the longest due first, of one workspace or of all. Taking
-- adds one to the epoch. Each queue is read in the order of its index, as far as
-- the limit: over all of them at once, everything that is due would be sorted.
-- ?1 shard, ?2 workspace ('' for all), ?3 queues as a JSON list, ?4 holder,
-- ?5 lease in ms, ?6 limit
-- look
SELECT 1
  FROM json_each(?3) AS q
 WHERE EXISTS (SELECT 1
                 FROM holdfast_task AS d INDEXED BY holdfast_task_due
                WHERE d.shard = ?1 AND (?2 = '' OR d.workspace = ?2) AND d.queue = q.value
                  AND d.state = 'due' AND d.holder IS NULL AND d.due_at <= {now})
 LIMIT 1
-- do
WITH due AS MATERIALIZED (
    SELECT c.value ->> 1 AS workspace, CAST(q.value AS TEXT) AS queue, c.value ->> 2 AS id
      FROM json_each(?3) AS q
      JOIN json_each((
           SELECT json_group_array(json_array(e.due_at, e.workspace, e.id))
             FROM (SELECT d.due_at, d.workspace, d.id
                     FROM holdfast_task AS d INDEXED BY holdfast_task_due
                    WHERE d.shard = ?1 AND (?2 = '' OR d.workspace = ?2) AND d.queue = q.value
                      AND d.state = 'due' AND d.holder IS NULL AND d.due_at <= {now}
                    ORDER BY d.due_at
                    LIMIT +?6) AS e)) AS c
     ORDER BY c.value ->> 0
     LIMIT +?6
)
UPDATE holdfast_task AS k
   SET holder = ?4, epoch = k.epoch + 1, until = {now} + ?5
 WHERE k.shard = ?1 AND (k.workspace, k.queue, k.id) IN (SELECT due.workspace, due.queue, due.id FROM due)
   AND k.holder IS NULL
RETURNING workspace, queue, id, input, epoch, until, failures, deaths
