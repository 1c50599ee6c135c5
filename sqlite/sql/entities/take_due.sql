-- Takes due operations, of each queue in a workspace the longest due first.
-- look
SELECT 1
  FROM json_each(:queues) AS q
 WHERE EXISTS (SELECT 1
                 FROM holdfast_entity AS d INDEXED BY holdfast_entity_turn
                WHERE d.shard = :shard AND (:workspace = '' OR d.workspace = :workspace) AND coalesce(d.queue, 'l:' || d.lifecycle) = q.value ->> 0
                  AND d.workspace = q.value ->> 2 AND d.phase = 'due' AND d.due_at <= {now})
 LIMIT 1
-- do
WITH due AS MATERIALIZED (
    SELECT c.value ->> 0 AS workspace, c.value ->> 1 AS lifecycle, c.value ->> 2 AS id
      FROM json_each(:queues) AS q
      JOIN json_each((
           SELECT json_group_array(json_array(d.workspace, d.lifecycle, d.id))
             FROM (SELECT x.workspace, x.lifecycle, x.id
                     FROM holdfast_entity AS x INDEXED BY holdfast_entity_turn
                    WHERE x.shard = :shard AND (:workspace = '' OR x.workspace = :workspace) AND coalesce(x.queue, 'l:' || x.lifecycle) = q.value ->> 0
                      AND x.workspace = q.value ->> 2 AND x.phase = 'due' AND x.due_at <= {now}
                    ORDER BY x.due_at
                    LIMIT :limit) AS d)) AS c
     LIMIT :limit
)
UPDATE holdfast_entity AS e
   SET phase = 'held', holder = :holder, epoch = e.epoch + 1, quiet = :quiet, due_at = {now},
       until = {now} + (SELECT q.value ->> 1 FROM json_each(:queues) AS q WHERE q.value ->> 0 = coalesce(e.queue, 'l:' || e.lifecycle) LIMIT 1)
 WHERE e.shard = :shard AND (e.workspace, e.lifecycle, e.id) IN (SELECT due.workspace, due.lifecycle, due.id FROM due)
   AND e.phase = 'due'
RETURNING workspace, lifecycle, id, coalesce(stage, ''), coalesce(plan, ''), {include entities/returning_columns}
