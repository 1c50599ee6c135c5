-- Counts what has not ended, by capability and state, each in the index of what has not ended.
SELECT 'operation', e.phase, pg_catalog.count(*) FROM {schema}.entity e
 WHERE e.shard + 0 = :shard AND e.workspace = :workspace AND e.phase <> 'free'
 GROUP BY e.phase
UNION ALL
SELECT 'run', r.status, pg_catalog.count(*) FROM {schema}.run r
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.status NOT IN ('COMPLETED', 'CANCELLED')
 GROUP BY r.status
UNION ALL
SELECT 'batch', b.status, pg_catalog.count(*) FROM {schema}.batch b
 WHERE b.shard + 0 = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.about IS NULL
 GROUP BY b.status
UNION ALL
SELECT 'approval', a.status, pg_catalog.count(*) FROM {schema}.approval a
 WHERE a.shard = :shard AND a.workspace = :workspace AND a.status = 'pending'
 GROUP BY a.status
UNION ALL
SELECT 'blocked', '', pg_catalog.count(*) FROM {schema}.follow f
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.blocked
