-- In which workspaces operations of a queue are due, behind a workspace of each queue, and '' behind its last. The index is
-- read from one workspace to the next, however much is due in each.
-- ?1 shard, ?2 workspace ('' for all), ?3 queues as a JSON list of [queue, behind which workspace], ?4 limit, ?5 workspaces that are left out, as a JSON list
-- do
WITH RECURSIVE turn(name, workspace, nth) AS (
    SELECT q.value ->> 0, q.value ->> 1, 0 FROM json_each(?3) AS q
    UNION ALL
    SELECT t.name,
           (SELECT e.workspace FROM holdfast_entity AS e INDEXED BY holdfast_entity_turn
             WHERE e.shard = ?1 AND coalesce(e.queue, 'l:' || e.lifecycle) = t.name AND e.workspace > t.workspace AND (?2 = '' OR e.workspace = ?2)
               AND e.phase = 'due' AND e.due_at <= {now}
             ORDER BY e.workspace
             LIMIT 1), t.nth + 1
      FROM turn AS t
     WHERE t.workspace IS NOT NULL
)
SELECT t.name, coalesce(t.workspace, '')
  FROM turn AS t
 WHERE t.nth > 0 AND coalesce(t.workspace, '') NOT IN (SELECT x.value FROM json_each(?5) AS x)
 LIMIT +?4
