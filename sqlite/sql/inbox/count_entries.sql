-- Counts the entries of the inbox in all workspaces of a shard, by kind.
-- unused: workspace
WITH RECURSIVE live(workspace) AS (
    SELECT * FROM (SELECT r.workspace FROM holdfast_run AS r INDEXED BY holdfast_run_live
      WHERE r.shard = :shard AND r.status NOT IN ('COMPLETED', 'CANCELLED')
      ORDER BY r.workspace LIMIT 1)
    UNION ALL
    SELECT (SELECT r.workspace FROM holdfast_run AS r INDEXED BY holdfast_run_live
             WHERE r.shard = :shard AND r.status NOT IN ('COMPLETED', 'CANCELLED') AND r.workspace > l.workspace
             ORDER BY r.workspace LIMIT 1)
      FROM live AS l
     WHERE l.workspace IS NOT NULL
)
SELECT 'uncertainOperation', count(*)
  FROM (SELECT 1 FROM holdfast_entity AS e INDEXED BY holdfast_entity_uncertain
         WHERE e.shard = :shard AND e.phase = 'uncertain' AND e.operation IS NOT NULL LIMIT :limit) AS x
UNION ALL
SELECT 'uncertainStep', count(*)
  FROM (SELECT 1 FROM holdfast_step AS s INDEXED BY holdfast_step_uncertain WHERE s.shard = :shard AND s.uncertain = 1 LIMIT :limit) AS x
UNION ALL
SELECT CASE WHEN x.webhook THEN 'refusedWebhook' ELSE 'blockedStream' END, count(*)
  FROM (SELECT f.reaction >= '$hook:' AND f.reaction < '$hook;' AS webhook FROM holdfast_follow AS f INDEXED BY holdfast_follow_blocked
         WHERE f.shard = :shard AND f.blocked = 1 LIMIT :limit) AS x
 GROUP BY x.webhook
UNION ALL
SELECT 'failedRun', count(*)
  FROM (SELECT 1 FROM live AS l
         CROSS JOIN holdfast_run AS r INDEXED BY holdfast_run_live
                 ON r.shard = :shard AND r.workspace = l.workspace AND r.status = 'FAILED' AND r.status NOT IN ('COMPLETED', 'CANCELLED')
         LIMIT :limit) AS x
UNION ALL
SELECT 'pendingApproval', count(*)
  FROM (SELECT a.expires_at FROM holdfast_approval AS a INDEXED BY holdfast_approval_pending
         WHERE a.shard = :shard AND a.status = 'pending' LIMIT :limit) AS x
 WHERE x.expires_at IS NULL OR x.expires_at > {now}
UNION ALL
SELECT 'overdueSignal', count(*)
  FROM (SELECT s.type, s.deadline, s.due_at FROM holdfast_step AS s INDEXED BY holdfast_step_due
         WHERE s.shard = :shard AND s.handler = '' AND s.due_at IS NOT NULL AND s.due_at <= {now} - :patience LIMIT :limit) AS x
 WHERE x.type = 'event' AND x.deadline <= x.due_at
UNION ALL
SELECT k.column1, count(*)
  FROM (SELECT b.status = 'PAUSED' AND NOT b.cancel_requested AS paused, b.error IS NOT NULL AND (b.cancel_requested OR b.dirty > 0) AS failing
          FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
         WHERE b.shard = :shard AND b.status NOT IN ('CANCELLED', 'COMPLETED')) AS x
 CROSS JOIN (VALUES ('pausedBatch'), ('failingTeardown')) AS k
 WHERE CASE k.column1 WHEN 'pausedBatch' THEN x.paused ELSE x.failing END
 GROUP BY k.column1
UNION ALL
SELECT 'expiredLease', count(*)
  FROM (SELECT * FROM (SELECT 1 FROM holdfast_entity AS e INDEXED BY holdfast_entity_held
          WHERE e.shard = :shard AND e.holder IS NOT NULL AND e.until <= {now} - :patience LIMIT :limit)
        UNION ALL
        SELECT * FROM (SELECT 1 FROM holdfast_step AS s INDEXED BY holdfast_step_held
          WHERE s.shard = :shard AND s.holder IS NOT NULL AND s.until <= {now} - :patience LIMIT :limit)
        UNION ALL
        SELECT * FROM (SELECT 1 FROM holdfast_follow AS f INDEXED BY holdfast_follow_held
          WHERE f.shard = :shard AND f.holder IS NOT NULL AND f.until <= {now} - :patience LIMIT :limit)
        UNION ALL
        SELECT * FROM (SELECT 1 FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
          CROSS JOIN holdfast_item AS i INDEXED BY holdfast_item_held ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.holder IS NOT NULL AND i.until <= {now} - :patience
          WHERE b.shard = :shard AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.running > 0
          LIMIT :limit)) AS x
UNION ALL
SELECT 'closingStream', count(*)
  FROM (SELECT 1 FROM holdfast_stream AS s INDEXED BY holdfast_stream_held
         WHERE s.shard = :shard AND s.holder IS NOT NULL AND s.until <= {now} - :patience LIMIT :limit) AS x
UNION ALL
SELECT 'heldUpRetention', count(*)
  FROM (SELECT * FROM (SELECT 1 FROM holdfast_run AS r INDEXED BY holdfast_run_prune
          WHERE r.shard = :shard AND r.prune_at IS NOT NULL AND r.prune_at <= {now} - :deleted_within LIMIT 1)
        UNION ALL
        SELECT * FROM (SELECT 1 FROM holdfast_batch AS b INDEXED BY holdfast_batch_prune
          WHERE b.shard = :shard AND b.prune_at IS NOT NULL AND b.prune_at <= {now} - :deleted_within LIMIT 1)
        UNION ALL
        SELECT * FROM (SELECT 1
           FROM (SELECT s.shard, s.workspace, s.name, s.first FROM holdfast_stream AS s INDEXED BY holdfast_stream_unpruned
                  WHERE s.shard = :shard AND s.pruned < s.first LIMIT :limit) AS s
          CROSS JOIN holdfast_event AS e ON e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name AND e.version = s.first - 1
          WHERE e.at <= {now} - :deleted_within
          LIMIT 1)) AS x
