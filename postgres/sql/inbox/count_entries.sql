-- Counts the entries of the inbox in all workspaces of a shard, by kind, for the metrics: each kind in its index of live
-- rows, up to :limit rows. Failed runs are found from one workspace to the next. What retention should have deleted counts once.
-- :patience as in the lists of leases and signals, :deleted_within as in that of what should have been deleted
WITH RECURSIVE t AS MATERIALIZED (
    SELECT n.now, n.now - :patience::float8 * interval '1 ms' AS before, n.now - :deleted_within::float8 * interval '1 ms' AS deleted FROM (SELECT {now} AS now) AS n
), live(workspace) AS (
    (SELECT r.workspace FROM {schema}.run r
      WHERE r.shard = :shard AND r.status NOT IN ('COMPLETED', 'CANCELLED')
      ORDER BY r.workspace LIMIT 1)
    UNION ALL
    SELECT (SELECT r.workspace FROM {schema}.run r
             WHERE r.shard = :shard AND r.status NOT IN ('COMPLETED', 'CANCELLED') AND r.workspace > l.workspace
             ORDER BY r.workspace LIMIT 1)
      FROM live l
     WHERE l.workspace IS NOT NULL
)
SELECT 'uncertainOperation', pg_catalog.count(*)
  FROM (SELECT 1 FROM {schema}.entity e
         WHERE 0 + e.shard = :shard AND (:workspace = '' OR e.workspace = :workspace) AND e.phase = 'uncertain' AND e.operation IS NOT NULL
         ORDER BY e.workspace, e.operation LIMIT :limit) AS x
UNION ALL
SELECT 'uncertainStep', pg_catalog.count(*)
  FROM (SELECT 1 FROM {schema}.step s WHERE s.shard = :shard AND s.uncertain ORDER BY s.workspace, s.run, s.name, s.visit LIMIT :limit) AS x
UNION ALL
SELECT CASE WHEN x.webhook THEN 'refusedWebhook' ELSE 'blockedStream' END, pg_catalog.count(*)
  FROM (SELECT f.reaction >= '$hook:' AND f.reaction < '$hook;' AS webhook FROM {schema}.follow f
         WHERE f.shard = :shard AND f.blocked
         ORDER BY f.workspace, f.reaction, f.stream LIMIT :limit) AS x
 GROUP BY x.webhook
UNION ALL
SELECT 'failedRun', pg_catalog.count(*)
  FROM (SELECT 1 FROM live l
         CROSS JOIN LATERAL (
               SELECT r.id FROM {schema}.run r
                WHERE r.shard = :shard AND r.workspace = l.workspace AND r.status = 'FAILED' AND r.status NOT IN ('COMPLETED', 'CANCELLED')
                ORDER BY r.id LIMIT :limit) AS r
         LIMIT :limit) AS x
UNION ALL
SELECT 'pendingApproval', pg_catalog.count(*)
  FROM (SELECT a.expires_at FROM {schema}.approval a
         WHERE a.shard = :shard AND a.status = 'pending'
         ORDER BY a.workspace, a.run, a.step, a.visit LIMIT :limit) AS x CROSS JOIN t
 WHERE x.expires_at IS NULL OR x.expires_at > t.now
UNION ALL
SELECT 'overdueSignal', pg_catalog.count(*)
  FROM (SELECT s.type, s.deadline, s.due_at FROM {schema}.step s
         WHERE s.shard = :shard AND s.handler = '' AND s.due_at <= (SELECT t.before FROM t)
         ORDER BY s.due_at LIMIT :limit) AS x
 WHERE x.type = 'event' AND x.deadline <= x.due_at
UNION ALL
SELECT k.kind, pg_catalog.count(*)
  FROM (SELECT b.status = 'PAUSED' AND NOT b.cancel_requested AS paused, b.error IS NOT NULL AND (b.cancel_requested OR b.dirty > 0) AS failing
          FROM {schema}.batch b
         WHERE b.shard + 0 = :shard AND b.status NOT IN ('CANCELLED', 'COMPLETED')) AS x
 CROSS JOIN (VALUES ('pausedBatch'), ('failingTeardown')) AS k(kind)
 WHERE CASE k.kind WHEN 'pausedBatch' THEN x.paused ELSE x.failing END
 GROUP BY k.kind
UNION ALL
SELECT 'expiredLease', pg_catalog.count(*)
  FROM ((SELECT 1 FROM {schema}.entity e
          WHERE e.shard + 0 = :shard AND e.holder IS NOT NULL AND e.until <= (SELECT t.before FROM t) ORDER BY e.until LIMIT :limit)
        UNION ALL
        (SELECT 1 FROM {schema}.step s
          WHERE s.shard = :shard AND s.holder IS NOT NULL AND s.until <= (SELECT t.before FROM t) ORDER BY s.until LIMIT :limit)
        UNION ALL
        (SELECT 1 FROM {schema}.follow f
          WHERE f.shard + 0 = :shard AND f.holder IS NOT NULL AND f.until <= (SELECT t.before FROM t) ORDER BY f.until LIMIT :limit)
        UNION ALL
        (SELECT 1 FROM {schema}.batch b
          CROSS JOIN LATERAL (
                SELECT i.until FROM {schema}.item i
                 WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.holder IS NOT NULL AND i.until <= (SELECT t.before FROM t)
                 ORDER BY i.until LIMIT :limit) AS i
          WHERE b.shard + 0 = :shard AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.running > 0
          LIMIT :limit)) AS x
UNION ALL
SELECT 'closingStream', pg_catalog.count(*)
  FROM (SELECT 1 FROM {schema}.stream s
         WHERE s.shard = :shard AND s.holder IS NOT NULL AND s.until <= (SELECT t.before FROM t) ORDER BY s.until LIMIT :limit) AS x
UNION ALL
SELECT 'heldUpRetention', pg_catalog.count(*)
  FROM ((SELECT 1 FROM {schema}.run r
          WHERE r.shard = :shard AND r.prune_at <= (SELECT t.deleted FROM t) ORDER BY r.prune_at LIMIT 1)
        UNION ALL
        (SELECT 1 FROM {schema}.batch b
          WHERE b.shard + 0 = :shard AND b.prune_at <= (SELECT t.deleted FROM t) ORDER BY b.prune_at LIMIT 1)
        UNION ALL
        (SELECT 1
           FROM (SELECT s.shard, s.workspace, s.name, s.first FROM {schema}.stream s
                  WHERE s.shard = :shard AND s.pruned < s.first
                  ORDER BY s.workspace, s.name LIMIT :limit) AS s
          CROSS JOIN LATERAL (
                SELECT e.at, e.version FROM {schema}.event e
                 WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name AND e.version >= s.first - 1
                 ORDER BY e.version -- uses the index with this order
                 LIMIT 1) AS e
          WHERE e.version = s.first - 1 AND e.at <= (SELECT t.deleted FROM t)
          LIMIT 1)) AS x
