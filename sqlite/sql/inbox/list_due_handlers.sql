-- Lists queues, handlers and reactions that have had work in the workspace since :patience ago or earlier, with the oldest of
-- it.
WITH RECURSIVE queue(name) AS (
    SELECT * FROM (SELECT coalesce(e.queue, 'l:' || e.lifecycle) FROM holdfast_entity AS e INDEXED BY holdfast_entity_turn
      WHERE e.shard = :shard AND e.phase = 'due'
      ORDER BY coalesce(e.queue, 'l:' || e.lifecycle) LIMIT 1)
    UNION ALL
    SELECT (SELECT coalesce(e.queue, 'l:' || e.lifecycle) FROM holdfast_entity AS e INDEXED BY holdfast_entity_turn
             WHERE e.shard = :shard AND e.phase = 'due' AND coalesce(e.queue, 'l:' || e.lifecycle) > q.name
             ORDER BY coalesce(e.queue, 'l:' || e.lifecycle) LIMIT 1)
      FROM queue AS q
     WHERE q.name IS NOT NULL
), handler(name) AS (
    SELECT * FROM (SELECT s.handler FROM holdfast_step AS s INDEXED BY holdfast_step_turn WHERE s.shard = :shard AND s.due_at IS NOT NULL ORDER BY s.handler LIMIT 1)
    UNION ALL
    SELECT (SELECT s.handler FROM holdfast_step AS s INDEXED BY holdfast_step_turn WHERE s.shard = :shard AND s.due_at IS NOT NULL AND s.handler > h.name ORDER BY s.handler LIMIT 1)
      FROM handler AS h
     WHERE h.name IS NOT NULL
)
SELECT x.kind || '/' || x.name, x.since, '', 0, x.kind, x.name, x.subject, '', ''
  FROM (
        SELECT 'operation' AS kind, q.name AS name,
               (SELECT min(e.due_at) FROM holdfast_entity AS e INDEXED BY holdfast_entity_turn
                 WHERE e.shard = :shard AND coalesce(e.queue, 'l:' || e.lifecycle) = q.name AND e.workspace = :workspace AND e.phase = 'due' AND e.due_at <= {now} - :patience) AS since,
               (SELECT e.operation FROM holdfast_entity AS e INDEXED BY holdfast_entity_turn
                 WHERE e.shard = :shard AND coalesce(e.queue, 'l:' || e.lifecycle) = q.name AND e.workspace = :workspace AND e.phase = 'due' AND e.due_at <= {now} - :patience
                 ORDER BY e.due_at LIMIT 1) AS subject
          FROM queue AS q
         WHERE q.name IS NOT NULL
        UNION ALL
        SELECT 'step', h.name,
               (SELECT min(s.due_at) FROM holdfast_step AS s INDEXED BY holdfast_step_turn
                 WHERE s.shard = :shard AND s.handler = h.name AND s.workspace = :workspace AND s.due_at IS NOT NULL AND s.due_at <= {now} - :patience),
               (SELECT s.run FROM holdfast_step AS s INDEXED BY holdfast_step_turn
                 WHERE s.shard = :shard AND s.handler = h.name AND s.workspace = :workspace AND s.due_at IS NOT NULL AND s.due_at <= {now} - :patience
                 ORDER BY s.due_at LIMIT 1)
          FROM handler AS h
         WHERE h.name IS NOT NULL
        UNION ALL
        SELECT 'batch', b.handler, min(b.served_at), b.id
          FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
         WHERE b.shard = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status IN ('PENDING', 'RUNNING')
           AND NOT b.cancel_requested AND b.running < b.parallel AND (b.next < b.items OR b.waiting > 0) AND b.served_at <= {now} - :patience
         GROUP BY b.handler
        UNION ALL
        SELECT 'reaction', r.name,
               (SELECT f.due_at FROM holdfast_follow AS f INDEXED BY holdfast_follow_ready
                 WHERE f.shard = r.shard AND f.reaction = r.name AND f.workspace = r.workspace AND f.crash_group >= 0 AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark
                   AND f.due_at <= {now} - :patience
                 ORDER BY f.crash_group, f.due_at LIMIT 1),
               (SELECT f.stream FROM holdfast_follow AS f INDEXED BY holdfast_follow_ready
                 WHERE f.shard = r.shard AND f.reaction = r.name AND f.workspace = r.workspace AND f.crash_group >= 0 AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark
                   AND f.due_at <= {now} - :patience
                 ORDER BY f.crash_group, f.due_at LIMIT 1)
          FROM holdfast_reaction AS r
         WHERE r.shard = :shard AND r.workspace = :workspace AND r.state = 'live' AND r.name <> '$feed') AS x
 WHERE x.since IS NOT NULL
 ORDER BY x.since
 LIMIT :limit
