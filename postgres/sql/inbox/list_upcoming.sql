-- Lists work of a workspace that is due or becomes due as time passes, the earliest first, with the time until then in ms. The deadline of a
-- wait for a signal or a decision is not listed as work until it has passed: somebody else may end the wait before. Waits for a signal and
-- paused runs are listed as kinds of their own, and so are leases on idempotency keys, which end without anybody's work.
SELECT x.kind, x.name, pg_catalog.ceil(extract(epoch FROM x.at - {now}) * 1000::numeric)::bigint
  FROM (
        SELECT 'operation' AS kind, coalesce(e.queue, 'l:' || e.lifecycle) AS name, e.due_at AS at
          FROM {schema}.entity e
         WHERE e.shard + 0 = :shard AND e.workspace = :workspace AND e.phase <> 'free' AND e.phase NOT IN ('held', 'uncertain') -- the index of a workspace's operations
        UNION ALL
        SELECT 'held operation', '', e.until
          FROM {schema}.entity e
         WHERE e.shard + 0 = :shard AND e.workspace = :workspace AND e.phase <> 'free' AND coalesce(e.holder, '') <> '' -- the same
        UNION ALL
        SELECT 'step', s.handler, s.due_at
          FROM {schema}.step s
         WHERE s.shard + 0 = :shard AND s.workspace = :workspace AND s.due_at IS NOT NULL
           AND NOT (s.type IN ('event', 'approval') AND s.deadline <= s.due_at AND s.due_at > {now})
        UNION ALL
        SELECT 'held step', '', s.until
          FROM {schema}.step s
         WHERE s.shard = :shard AND s.workspace = :workspace AND s.holder IS NOT NULL
        UNION ALL
        SELECT 'reaction', w.name, w.at
          FROM {schema}.reaction r
         CROSS JOIN LATERAL (
               SELECT f.reaction AS name, f.due_at AS at FROM {schema}.follow f
                WHERE f.shard = r.shard AND f.reaction = r.name AND f.workspace = r.workspace AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark
               UNION ALL
               (SELECT d.reaction, {now} FROM {schema}.due d
                 WHERE d.shard = r.shard AND d.reaction = r.name AND d.workspace = r.workspace
                 LIMIT 1)) AS w
         WHERE r.shard = :shard AND r.workspace = :workspace AND r.state = 'live'
        UNION ALL
        SELECT 'held reaction', '', f.until
          FROM {schema}.follow f
         WHERE f.shard = :shard AND f.workspace = :workspace AND coalesce(f.holder, '') <> '' -- not the leases of all workspaces
        UNION ALL
        SELECT 'unfinished reaction', '', {now}
          FROM {schema}.reaction r
         WHERE r.shard = :shard AND r.workspace = :workspace AND r.state <> 'live'
        UNION ALL
        SELECT 'held stream', '', s.until
          FROM {schema}.stream s
         WHERE s.shard = :shard AND s.workspace = :workspace AND coalesce(s.holder, '') <> ''
        UNION ALL
        SELECT 'batch', b.handler, w.at
          FROM {schema}.batch b
         CROSS JOIN LATERAL (
               SELECT {now} AS at WHERE b.next < b.items
               UNION ALL
               SELECT i.due_at FROM {schema}.item i
                WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.state = 'waiting') AS w
         WHERE b.shard + 0 = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status IN ('PENDING', 'RUNNING')
           AND NOT b.cancel_requested AND b.running < b.parallel
        UNION ALL
        SELECT 'held item', '', i.until
          FROM {schema}.batch b
         CROSS JOIN LATERAL (
               SELECT i.until FROM {schema}.item i
                WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.holder IS NOT NULL) AS i
         WHERE b.shard + 0 = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.running > 0
        UNION ALL
        SELECT 'paused batch', '', {now}
          FROM {schema}.batch b
         WHERE b.shard + 0 = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status = 'PAUSED'
        UNION ALL
        SELECT 'maintenance', '', b.due_at
          FROM {schema}.batch b
         WHERE b.shard + 0 = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.due_at IS NOT NULL
        UNION ALL
        SELECT 'cleaning', '', i.sweep_at
          FROM {schema}.item i
         WHERE i.shard + 0 = :shard AND i.workspace = :workspace AND i.sweep_at IS NOT NULL
        UNION ALL
        SELECT 'held request', '', q.until
          FROM {schema}.request q
         WHERE q.shard = :shard AND q.workspace = :workspace AND q.until > {now}
        UNION ALL
        SELECT 'waiting signal', r.id || '/' || r.step, coalesce(s.deadline, {now})
          FROM {schema}.run r
         CROSS JOIN LATERAL (
               SELECT s.deadline FROM {schema}.step s
                WHERE s.shard = r.shard AND s.workspace = r.workspace AND s.run = r.id AND s.name = r.step AND s.visit = r.visit
                  AND s.type = 'event' AND s.status = 'WAITING' AND (s.due_at IS NULL OR s.due_at > {now})
                LIMIT 1) AS s
         WHERE r.shard = :shard AND r.workspace = :workspace AND r.status = 'WAITING' AND r.status NOT IN ('COMPLETED', 'CANCELLED')
        UNION ALL
        SELECT 'paused run', r.id, {now}
          FROM {schema}.run r
         WHERE r.shard = :shard AND r.workspace = :workspace AND r.status = 'PAUSED' AND r.status NOT IN ('COMPLETED', 'CANCELLED')) AS x
 ORDER BY CASE WHEN x.kind IN ('waiting signal', 'paused run') THEN 1 ELSE 0 END, x.at, x.kind, x.name -- waits must not crowd out work
 LIMIT :limit
