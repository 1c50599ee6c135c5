-- Takes due tasks, the longest due first, of one workspace or of all. Taking
-- adds one to the epoch.
-- ?1 shard, ?2 workspace ('' for all), ?3 queues as a JSON list, ?4 holder,
-- ?5 lease in ms, ?6 limit
-- look
SELECT 1
  FROM holdfast_task AS d
 WHERE d.shard = ?1 AND (?2 = '' OR d.workspace = ?2)
   AND d.queue IN (SELECT q.value FROM json_each(?3) AS q)
   AND d.state = 'due' AND d.holder IS NULL AND d.due_at <= {now}
 LIMIT 1
-- do
UPDATE holdfast_task AS k
   SET holder = ?4, epoch = k.epoch + 1, until = {now} + ?5
 WHERE k.shard = ?1
   AND (k.workspace, k.queue, k.id) IN (
       SELECT d.workspace, d.queue, d.id
         FROM holdfast_task AS d
        WHERE d.shard = ?1 AND (?2 = '' OR d.workspace = ?2)
          AND d.queue IN (SELECT q.value FROM json_each(?3) AS q)
          AND d.state = 'due' AND d.holder IS NULL AND d.due_at <= {now}
        ORDER BY d.due_at
        LIMIT ?6)
RETURNING workspace, queue, id, input, epoch, until, failures, deaths
