-- Takes operations that are due, of each queue in a workspace the longest due first.
-- Taking adds one to the epoch; due_at is then when it was taken.
-- ?1 shard, ?2 workspace ('' for all), ?3 queues as a JSON list of [queue, lease in ms, workspace], ?4 holder, ?5 limit,
-- ?6 whether the holder is elsewhere, and quiet until it is heard of
-- look
SELECT 1
  FROM json_each(?3) AS q
 WHERE EXISTS (SELECT 1
                 FROM holdfast_entity AS d INDEXED BY holdfast_entity_turn
                WHERE d.shard = ?1 AND (?2 = '' OR d.workspace = ?2) AND coalesce(d.queue, 'l:' || d.lifecycle) = q.value ->> 0
                  AND d.workspace = q.value ->> 2 AND d.phase = 'due' AND d.due_at <= {now})
 LIMIT 1
-- do
WITH due AS MATERIALIZED (
    SELECT c.value ->> 0 AS workspace, c.value ->> 1 AS lifecycle, c.value ->> 2 AS id
      FROM json_each(?3) AS q
      JOIN json_each((
           SELECT json_group_array(json_array(d.workspace, d.lifecycle, d.id))
             FROM (SELECT x.workspace, x.lifecycle, x.id
                     FROM holdfast_entity AS x INDEXED BY holdfast_entity_turn
                    WHERE x.shard = ?1 AND (?2 = '' OR x.workspace = ?2) AND coalesce(x.queue, 'l:' || x.lifecycle) = q.value ->> 0
                      AND x.workspace = q.value ->> 2 AND x.phase = 'due' AND x.due_at <= {now}
                    ORDER BY x.due_at
                    LIMIT +?5) AS d)) AS c
     LIMIT +?5
)
UPDATE holdfast_entity AS e
   SET phase = 'held', holder = ?4, epoch = e.epoch + 1, quiet = ?6, due_at = {now},
       until = {now} + (SELECT q.value ->> 1 FROM json_each(?3) AS q WHERE q.value ->> 0 = coalesce(e.queue, 'l:' || e.lifecycle) LIMIT 1)
 WHERE e.shard = ?1 AND (e.workspace, e.lifecycle, e.id) IN (SELECT due.workspace, due.lifecycle, due.id FROM due)
   AND e.phase = 'due'
RETURNING workspace, lifecycle, id, coalesce(stage, ''), coalesce(plan, ''), coalesce(status, ''), coalesce(version, -1), coalesce(data, 'null'), coalesce(created_at, 0),
          coalesce(updated_at, 0), coalesce(phase, 'free'), coalesce(operation, ''), coalesce(step, ''),
          coalesce(requester, ''), coalesce(revert, ''), coalesce(input, ''), coalesce(holder, ''),
          coalesce(epoch, 0), coalesce(until, 0), coalesce(claimed_at, 0), coalesce(begun, 0), coalesce(failures, 0),
          coalesce(deaths, 0), coalesce(error, ''), coalesce(outcome, ''), coalesce(manual, 0)
