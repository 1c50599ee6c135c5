-- Counts what has not ended, by capability and state, each in the index of what has not ended.
SELECT 'operation', e.phase, count(*) FROM holdfast_entity AS e INDEXED BY holdfast_entity_open
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.phase <> 'free'
 GROUP BY e.phase
UNION ALL
SELECT 'run', r.status, count(*) FROM holdfast_run AS r INDEXED BY holdfast_run_live
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.status NOT IN ('COMPLETED', 'CANCELLED')
 GROUP BY r.status
UNION ALL
SELECT 'batch', b.status, count(*) FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
 WHERE b.shard = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.about IS NULL
 GROUP BY b.status
UNION ALL
SELECT 'approval', a.status, count(*) FROM holdfast_approval AS a INDEXED BY holdfast_approval_pending
 WHERE a.shard = :shard AND a.workspace = :workspace AND a.status = 'pending'
 GROUP BY a.status
UNION ALL
SELECT 'blocked', '', count(*) FROM holdfast_follow AS f INDEXED BY holdfast_follow_blocked
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.blocked = 1
