-- Lists queues, handlers and reactions that have had work in the workspace since :patience ago or earlier, with the oldest of
-- it. Queues and handlers are found one after the other in the indexes of due work, over all workspaces of the shard. A due
-- notice that nobody has collected counts from the time of its event.
WITH RECURSIVE t AS MATERIALIZED (SELECT {now} - :patience::float8 * interval '1 ms' AS before),
queue(name) AS (
    (SELECT coalesce(e.queue, 'l:' || e.lifecycle) FROM {schema}.entity e
      WHERE 0 + e.shard = :shard AND e.phase = 'due'
      ORDER BY coalesce(e.queue, 'l:' || e.lifecycle) LIMIT 1)
    UNION ALL
    SELECT (SELECT coalesce(e.queue, 'l:' || e.lifecycle) FROM {schema}.entity e
             WHERE 0 + e.shard = :shard AND e.phase = 'due' AND coalesce(e.queue, 'l:' || e.lifecycle) > q.name
             ORDER BY coalesce(e.queue, 'l:' || e.lifecycle) LIMIT 1)
      FROM queue q
     WHERE q.name IS NOT NULL
), handler(name) AS (
    (SELECT s.handler FROM {schema}.step s WHERE s.shard + 0 = :shard AND s.due_at IS NOT NULL ORDER BY s.handler LIMIT 1)
    UNION ALL
    SELECT (SELECT s.handler FROM {schema}.step s WHERE s.shard + 0 = :shard AND s.due_at IS NOT NULL AND s.handler > h.name ORDER BY s.handler LIMIT 1)
      FROM handler h
     WHERE h.name IS NOT NULL
)
SELECT x.kind || '/' || x.name, x.since, '', 'epoch'::timestamptz, x.kind, x.name, x.subject, '', ''
  FROM (
        SELECT 'operation' AS kind, q.name, e.due_at AS since, e.operation AS subject
          FROM queue q CROSS JOIN t
         CROSS JOIN LATERAL (
               SELECT e.due_at, e.operation FROM {schema}.entity e
                WHERE 0 + e.shard = :shard AND coalesce(e.queue, 'l:' || e.lifecycle) = q.name AND e.workspace = :workspace AND e.phase = 'due' AND e.due_at <= t.before
                ORDER BY e.due_at LIMIT 1) AS e
        UNION ALL
        SELECT 'step', h.name, s.due_at, s.run
          FROM handler h CROSS JOIN t
         CROSS JOIN LATERAL (
               SELECT s.due_at, s.run FROM {schema}.step s
                WHERE s.shard + 0 = :shard AND s.handler = h.name AND s.workspace = :workspace AND s.due_at <= t.before
                ORDER BY s.due_at LIMIT 1) AS s
        UNION ALL
        SELECT 'batch', b.handler, pg_catalog.min(b.served_at), pg_catalog.min(b.id)
          FROM {schema}.batch b CROSS JOIN t
         WHERE b.shard + 0 = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status IN ('PENDING', 'RUNNING')
           AND NOT b.cancel_requested AND b.running < b.parallel AND (b.next < b.items OR b.waiting > 0) AND b.served_at <= t.before
         GROUP BY b.handler
        UNION ALL
        SELECT 'reaction', r.name, w.since, w.stream
          FROM {schema}.reaction r CROSS JOIN t
         CROSS JOIN LATERAL (
               (SELECT f.due_at AS since, f.stream FROM {schema}.follow f
                 WHERE f.shard = r.shard AND f.reaction = r.name AND f.workspace = r.workspace AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark AND f.due_at <= t.before
                 ORDER BY f.crash_group DESC, f.due_at LIMIT 1)
               UNION ALL
               (SELECT CASE r.source WHEN 'event' THEN (SELECT e.at FROM {schema}.event e WHERE e.shard = d.shard AND e.workspace = d.workspace AND e.stream = d.stream AND e.version = d.version)
                                     ELSE (SELECT h.at FROM {schema}.history h WHERE h.shard = d.shard AND h.workspace = d.workspace AND h.stream = d.stream AND h.version = d.version) END, d.stream
                  FROM {schema}.due d
                 WHERE d.shard = r.shard AND d.reaction = r.name AND d.workspace = r.workspace
                 ORDER BY d.stream, d.version LIMIT 1)
               ORDER BY 1 LIMIT 1) AS w
         WHERE r.shard = :shard AND r.workspace = :workspace AND r.state = 'live' AND r.name <> '$feed' AND w.since <= t.before) AS x
 ORDER BY x.since
 LIMIT :limit
