-- Lists since when the oldest work of each queue, handler and reaction has been due and not taken, in all workspaces of a
-- shard, and its workspace. There are no due notices here.
-- unused: workspace
WITH RECURSIVE queue(name) AS (
    SELECT * FROM (SELECT coalesce(e.queue, 'l:' || e.lifecycle) FROM holdfast_entity AS e INDEXED BY holdfast_entity_due
      WHERE e.shard = :shard AND e.phase = 'due'
      ORDER BY coalesce(e.queue, 'l:' || e.lifecycle) LIMIT 1)
    UNION ALL
    SELECT (SELECT coalesce(e.queue, 'l:' || e.lifecycle) FROM holdfast_entity AS e INDEXED BY holdfast_entity_due
             WHERE e.shard = :shard AND e.phase = 'due' AND coalesce(e.queue, 'l:' || e.lifecycle) > q.name
             ORDER BY coalesce(e.queue, 'l:' || e.lifecycle) LIMIT 1)
      FROM queue AS q
     WHERE q.name IS NOT NULL
), handler(name) AS (
    SELECT * FROM (SELECT s.handler FROM holdfast_step AS s INDEXED BY holdfast_step_due WHERE s.shard = :shard AND s.due_at IS NOT NULL ORDER BY s.handler LIMIT 1)
    UNION ALL
    SELECT (SELECT s.handler FROM holdfast_step AS s INDEXED BY holdfast_step_due WHERE s.shard = :shard AND s.due_at IS NOT NULL AND s.handler > h.name ORDER BY s.handler LIMIT 1)
      FROM handler AS h
     WHERE h.name IS NOT NULL
), ready(name) AS (
    SELECT * FROM (SELECT f.reaction FROM holdfast_follow AS f INDEXED BY holdfast_follow_ready
      WHERE f.shard = :shard AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark
      ORDER BY f.reaction LIMIT 1)
    UNION ALL
    SELECT (SELECT f.reaction FROM holdfast_follow AS f INDEXED BY holdfast_follow_ready
             WHERE f.shard = :shard AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark AND f.reaction > g.name
             ORDER BY f.reaction LIMIT 1)
      FROM ready AS g
     WHERE g.name IS NOT NULL
), turn(name, workspace) AS (
    SELECT g.name, '' FROM ready AS g WHERE g.name IS NOT NULL
    UNION ALL
    SELECT a.name, (SELECT f.workspace FROM holdfast_follow AS f INDEXED BY holdfast_follow_ready
                     WHERE f.shard = :shard AND f.reaction = a.name AND f.workspace > a.workspace AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark
                     ORDER BY f.workspace LIMIT 1)
      FROM turn AS a
     WHERE a.workspace IS NOT NULL
)
SELECT x.kind, x.name, x.workspace, {now} - x.since
  FROM (
        SELECT 'operation' AS kind, q.name AS name,
               (SELECT e.workspace FROM holdfast_entity AS e INDEXED BY holdfast_entity_due
                 WHERE e.shard = :shard AND coalesce(e.queue, 'l:' || e.lifecycle) = q.name AND e.phase = 'due' AND e.due_at <= {now}
                 ORDER BY e.due_at LIMIT 1) AS workspace,
               (SELECT min(e.due_at) FROM holdfast_entity AS e INDEXED BY holdfast_entity_due
                 WHERE e.shard = :shard AND coalesce(e.queue, 'l:' || e.lifecycle) = q.name AND e.phase = 'due' AND e.due_at <= {now}) AS since
          FROM queue AS q
         WHERE q.name IS NOT NULL
        UNION ALL
        SELECT 'step', h.name,
               (SELECT s.workspace FROM holdfast_step AS s INDEXED BY holdfast_step_due
                 WHERE s.shard = :shard AND s.handler = h.name AND s.due_at IS NOT NULL AND s.due_at <= {now}
                 ORDER BY s.due_at LIMIT 1),
               (SELECT min(s.due_at) FROM holdfast_step AS s INDEXED BY holdfast_step_due
                 WHERE s.shard = :shard AND s.handler = h.name AND s.due_at IS NOT NULL AND s.due_at <= {now})
          FROM handler AS h
         WHERE h.name IS NOT NULL
        UNION ALL
        SELECT 'item', b.handler, b.workspace, min(CASE WHEN b.next < b.items THEN b.served_at ELSE max(b.served_at, b.retry) END)
          FROM (SELECT b.handler, b.workspace, b.next, b.items, b.served_at,
                       CASE WHEN b.waiting > 0 THEN (SELECT min(i.due_at) FROM holdfast_item AS i INDEXED BY holdfast_item_waiting
                         WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.state = 'waiting' AND i.due_at <= {now}) END AS retry
                  FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
                 WHERE b.shard = :shard AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status IN ('PENDING', 'RUNNING')
                   AND NOT b.cancel_requested AND b.running < b.parallel) AS b
         WHERE b.next < b.items OR b.retry IS NOT NULL
         GROUP BY b.handler
        UNION ALL
        SELECT 'reaction', a.name, a.workspace,
               coalesce((SELECT min(f.due_at) FROM holdfast_follow AS f INDEXED BY holdfast_follow_ready
                          WHERE f.shard = :shard AND f.reaction = a.name AND f.workspace = a.workspace AND f.crash_group = 0
                            AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark AND f.due_at <= {now}),
                        (SELECT min(f.due_at) FROM holdfast_follow AS f INDEXED BY holdfast_follow_ready
                          WHERE f.shard = :shard AND f.reaction = a.name AND f.workspace = a.workspace AND f.crash_group > 0
                            AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark AND f.due_at <= {now}))
          FROM turn AS a
         WHERE a.workspace <> '' AND EXISTS (SELECT 1 FROM holdfast_reaction AS r WHERE r.shard = :shard AND r.workspace = a.workspace AND r.name = a.name AND r.state = 'live')) AS x
 WHERE x.since IS NOT NULL
