-- Lists since when the oldest work of each queue, handler and reaction has been due and not taken, in all workspaces of a
-- shard, for the metrics, and its workspace. They are found one after the other in the indexes of due work, reactions by workspace. A due notice
-- that nobody has collected counts from the time of its event, the first of its reaction and workspace. A batch counts from the
-- time at which an item of it was last taken or, if only retries are left, at which the first of them was due.
WITH RECURSIVE t AS MATERIALIZED (SELECT {now} AS now),
queue(name) AS (
    (SELECT coalesce(e.queue, 'l:' || e.lifecycle) FROM {schema}.entity e
      WHERE e.shard + 0 = :shard AND (:workspace = '' OR e.workspace = :workspace) AND e.phase = 'due'
      ORDER BY coalesce(e.queue, 'l:' || e.lifecycle) LIMIT 1)
    UNION ALL
    SELECT (SELECT coalesce(e.queue, 'l:' || e.lifecycle) FROM {schema}.entity e
             WHERE e.shard + 0 = :shard AND e.phase = 'due' AND coalesce(e.queue, 'l:' || e.lifecycle) > q.name
             ORDER BY coalesce(e.queue, 'l:' || e.lifecycle) LIMIT 1)
      FROM queue q
     WHERE q.name IS NOT NULL
), handler(name) AS (
    (SELECT s.handler FROM {schema}.step s WHERE s.shard = :shard AND s.due_at IS NOT NULL ORDER BY s.handler LIMIT 1)
    UNION ALL
    SELECT (SELECT s.handler FROM {schema}.step s WHERE s.shard = :shard AND s.due_at IS NOT NULL AND s.handler > h.name ORDER BY s.handler LIMIT 1)
      FROM handler h
     WHERE h.name IS NOT NULL
), ready(name) AS (
    (SELECT f.reaction FROM {schema}.follow f
      WHERE f.shard = :shard AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark
      ORDER BY f.reaction LIMIT 1)
    UNION ALL
    SELECT (SELECT f.reaction FROM {schema}.follow f
             WHERE f.shard = :shard AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark AND f.reaction > g.name
             ORDER BY f.reaction LIMIT 1)
      FROM ready g
     WHERE g.name IS NOT NULL
), turn(name, workspace) AS (
    SELECT g.name, '' COLLATE pg_catalog."C" FROM ready g WHERE g.name IS NOT NULL
    UNION ALL
    SELECT a.name, (SELECT f.workspace FROM {schema}.follow f
                     WHERE f.shard = :shard AND f.reaction = a.name AND f.workspace > a.workspace AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark
                     ORDER BY f.workspace LIMIT 1)
      FROM turn a
     WHERE a.workspace IS NOT NULL
), noticed(name) AS (
    (SELECT d.reaction FROM {schema}.due d WHERE d.shard = :shard ORDER BY d.reaction LIMIT 1)
    UNION ALL
    SELECT (SELECT d.reaction FROM {schema}.due d WHERE d.shard = :shard AND d.reaction > n.name ORDER BY d.reaction LIMIT 1)
      FROM noticed n
     WHERE n.name IS NOT NULL
), notice(name, workspace) AS (
    SELECT n.name, '' COLLATE pg_catalog."C" FROM noticed n WHERE n.name IS NOT NULL
    UNION ALL
    SELECT a.name, (SELECT d.workspace FROM {schema}.due d
                     WHERE d.shard = :shard AND d.reaction = a.name AND d.workspace > a.workspace
                     ORDER BY d.workspace LIMIT 1)
      FROM notice a
     WHERE a.workspace IS NOT NULL
)
SELECT x.kind, x.name, x.workspace, pg_catalog.floor(extract(epoch FROM (SELECT t.now FROM t) - x.since) * 1000::numeric)::bigint
  FROM (
        SELECT 'operation' AS kind, q.name, e.workspace, e.due_at AS since
          FROM queue q
         CROSS JOIN LATERAL (
               SELECT e.due_at, e.workspace FROM {schema}.entity e
                WHERE e.shard + 0 = :shard AND coalesce(e.queue, 'l:' || e.lifecycle) = q.name AND e.phase = 'due' AND e.due_at <= (SELECT t.now FROM t)
                ORDER BY e.due_at LIMIT 1) AS e
        UNION ALL
        SELECT 'step', h.name, s.workspace, s.due_at
          FROM handler h
         CROSS JOIN LATERAL (
               SELECT s.due_at, s.workspace FROM {schema}.step s
                WHERE s.shard = :shard AND s.handler = h.name AND s.due_at <= (SELECT t.now FROM t)
                ORDER BY s.due_at LIMIT 1) AS s
        UNION ALL
        SELECT 'item', o.handler, o.workspace, o.since
          FROM (SELECT DISTINCT ON (b.handler) b.handler, b.workspace, CASE WHEN b.next < b.items THEN b.served_at ELSE greatest(b.served_at, i.due_at) END AS since
                  FROM {schema}.batch b
                  LEFT JOIN LATERAL (
                       SELECT i.due_at FROM {schema}.item i
                        WHERE b.waiting > 0 AND i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.state = 'waiting' AND i.due_at <= (SELECT t.now FROM t)
                        ORDER BY i.due_at LIMIT 1) AS i ON true
                 WHERE b.shard + 0 = :shard AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status IN ('PENDING', 'RUNNING')
                   AND NOT b.cancel_requested AND b.running < b.parallel AND (b.next < b.items OR i.due_at IS NOT NULL)
                 ORDER BY b.handler, since) AS o
        UNION ALL
        SELECT 'reaction', a.name, a.workspace, f.due_at
          FROM turn a
         CROSS JOIN LATERAL (
               (SELECT f.due_at FROM {schema}.follow f
                 WHERE f.shard = :shard AND f.reaction = a.name AND f.workspace = a.workspace AND f.crash_group = 0
                   AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark AND f.due_at <= (SELECT t.now FROM t)
                 ORDER BY f.due_at LIMIT 1)
               UNION ALL
               (SELECT f.due_at FROM {schema}.follow f
                 WHERE f.shard = :shard AND f.reaction = a.name AND f.workspace = a.workspace AND f.crash_group > 0
                   AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark AND f.due_at <= (SELECT t.now FROM t)
                 ORDER BY f.crash_group DESC, f.due_at LIMIT 1)) AS f
         CROSS JOIN LATERAL (SELECT 1 FROM {schema}.reaction r WHERE r.shard = :shard AND r.workspace = a.workspace AND r.name = a.name AND r.state = 'live' LIMIT 1) AS r
         WHERE a.workspace <> ''
        UNION ALL
        SELECT 'reaction', a.name, a.workspace,
               CASE d.source WHEN 'event' THEN (SELECT e.at FROM {schema}.event e WHERE e.shard = :shard AND e.workspace = a.workspace AND e.stream = d.stream AND e.version = d.version)
                             ELSE (SELECT h.at FROM {schema}.history h WHERE h.shard = :shard AND h.workspace = a.workspace AND h.stream = d.stream AND h.version = d.version) END
          FROM notice a
         CROSS JOIN LATERAL (
               SELECT r.source, d.stream, d.version
                 FROM (SELECT r.source FROM {schema}.reaction r WHERE r.shard = :shard AND r.workspace = a.workspace AND r.name = a.name AND r.state = 'live' LIMIT 1) AS r
                CROSS JOIN (SELECT d.stream, d.version FROM {schema}.due d
                             WHERE d.shard = :shard AND d.reaction = a.name AND d.workspace = a.workspace
                             ORDER BY d.stream, d.version LIMIT 1) AS d) AS d
         WHERE a.workspace <> '') AS x
 WHERE x.since IS NOT NULL
