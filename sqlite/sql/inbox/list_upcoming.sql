-- Lists work of a workspace that is due or becomes due as time passes, the earliest first, with the time until then in ms. The deadline of a
-- wait for a signal or a decision is not listed as work until it has passed: somebody else may end the wait before. Waits for a signal and
-- paused runs are listed as kinds of their own, and so are leases on idempotency keys, which end without anybody's work.
SELECT x.kind, x.name, x.at - {now}
  FROM (
        SELECT 'operation' AS kind, coalesce(e.queue, 'l:' || e.lifecycle) AS name, e.due_at AS at
          FROM holdfast_entity AS e INDEXED BY holdfast_entity_open
         WHERE e.shard = :shard AND e.workspace = :workspace AND e.phase <> 'free' AND e.phase = 'due'
        UNION ALL
        SELECT 'held operation', '', e.until
          FROM holdfast_entity AS e INDEXED BY holdfast_entity_open
         WHERE e.shard = :shard AND e.workspace = :workspace AND e.phase <> 'free' AND e.holder IS NOT NULL
        UNION ALL
        SELECT 'step', s.handler, s.due_at
          FROM holdfast_step AS s INDEXED BY holdfast_step_turn
         WHERE s.shard = :shard AND s.workspace = :workspace AND s.due_at IS NOT NULL
           AND NOT (s.type IN ('event', 'approval') AND s.deadline <= s.due_at AND s.due_at > {now})
        UNION ALL
        SELECT 'held step', '', s.until
          FROM holdfast_step AS s INDEXED BY holdfast_step_held
         WHERE s.shard = :shard AND s.workspace = :workspace AND s.holder IS NOT NULL
        UNION ALL
        SELECT 'reaction', f.reaction, f.due_at
          FROM holdfast_reaction AS r
          JOIN holdfast_follow AS f INDEXED BY holdfast_follow_ready ON f.shard = r.shard AND f.reaction = r.name AND f.workspace = r.workspace
         WHERE r.shard = :shard AND r.workspace = :workspace AND r.state = 'live' AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark
        UNION ALL
        SELECT 'held reaction', '', f.until
          FROM holdfast_follow AS f INDEXED BY holdfast_follow_held
         WHERE f.shard = :shard AND f.workspace = :workspace AND f.holder IS NOT NULL
        UNION ALL
        SELECT 'unfinished reaction', '', {now}
          FROM holdfast_reaction AS r INDEXED BY holdfast_reaction_unfinished
         WHERE r.shard = :shard AND r.workspace = :workspace AND r.state <> 'live'
        UNION ALL
        SELECT 'held stream', '', s.until
          FROM holdfast_stream AS s INDEXED BY holdfast_stream_held
         WHERE s.shard = :shard AND s.workspace = :workspace AND s.holder IS NOT NULL
        UNION ALL
        SELECT 'batch', b.handler, {now}
          FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
         WHERE b.shard = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status IN ('PENDING', 'RUNNING')
           AND NOT b.cancel_requested AND b.running < b.parallel AND b.next < b.items
        UNION ALL
        SELECT 'batch', b.handler, i.due_at
          FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
          JOIN holdfast_item AS i INDEXED BY holdfast_item_waiting ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.state = 'waiting'
         WHERE b.shard = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status IN ('PENDING', 'RUNNING')
           AND NOT b.cancel_requested AND b.running < b.parallel AND b.waiting > 0
        UNION ALL
        SELECT 'held item', '', i.until
          FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
          JOIN holdfast_item AS i INDEXED BY holdfast_item_held ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.holder IS NOT NULL
         WHERE b.shard = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.running > 0
        UNION ALL
        SELECT 'paused batch', '', {now}
          FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
         WHERE b.shard = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status = 'PAUSED'
        UNION ALL
        SELECT 'maintenance', '', b.due_at
          FROM holdfast_batch AS b INDEXED BY holdfast_batch_due
         WHERE b.shard = :shard AND b.workspace = :workspace AND b.due_at IS NOT NULL
        UNION ALL
        SELECT 'cleaning', '', i.sweep_at
          FROM holdfast_item AS i INDEXED BY holdfast_item_turn
         WHERE i.shard = :shard AND i.workspace = :workspace AND i.sweep_at IS NOT NULL
        UNION ALL
        SELECT 'held request', '', q.until
          FROM holdfast_request AS q
         WHERE q.shard = :shard AND q.workspace = :workspace AND q.until > {now}
        UNION ALL
        SELECT 'waiting signal', r.id || '/' || r.step, coalesce(s.deadline, {now})
          FROM holdfast_run AS r INDEXED BY holdfast_run_live
          JOIN holdfast_step AS s ON s.shard = r.shard AND s.workspace = r.workspace AND s.run = r.id AND s.name = r.step AND s.visit = r.visit
         WHERE r.shard = :shard AND r.workspace = :workspace AND r.status = 'WAITING' AND r.status NOT IN ('COMPLETED', 'CANCELLED')
           AND s.type = 'event' AND s.status = 'WAITING' AND (s.due_at IS NULL OR s.due_at > {now})
        UNION ALL
        SELECT 'paused run', r.id, {now}
          FROM holdfast_run AS r INDEXED BY holdfast_run_live
         WHERE r.shard = :shard AND r.workspace = :workspace AND r.status = 'PAUSED' AND r.status NOT IN ('COMPLETED', 'CANCELLED')) AS x
 ORDER BY CASE WHEN x.kind IN ('waiting signal', 'paused run') THEN 1 ELSE 0 END, x.at, x.kind, x.name -- waits must not crowd out work
 LIMIT :limit
