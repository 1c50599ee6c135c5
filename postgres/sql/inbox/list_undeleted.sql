-- Lists what should have been deleted :patience ago or earlier: runs whose retention has ended, items of batches, and events that a truncate
-- or a close has removed, with their count up to :limit.
SELECT x.kind, x.since, '', 'epoch'::timestamptz, x.kind, x.n::text, x.subject, '', ''
  FROM (
        SELECT 'runs' AS kind, pg_catalog.min(r.prune_at) AS since, pg_catalog.count(*) AS n, pg_catalog.min(r.id) AS subject
          FROM (SELECT r.prune_at, r.id FROM {schema}.run r
                 WHERE r.shard = :shard AND (:workspace = '' OR r.workspace = :workspace) AND r.prune_at <= (SELECT {now} - :patience::float8 * interval '1 ms')
                 ORDER BY r.prune_at LIMIT :limit) AS r
        UNION ALL
        SELECT 'batches', pg_catalog.min(b.prune_at), pg_catalog.count(*), pg_catalog.min(b.id)
          FROM (SELECT b.prune_at, b.id FROM {schema}.batch b
                 WHERE b.shard + 0 = :shard AND (:workspace = '' OR b.workspace = :workspace) AND b.prune_at <= (SELECT {now} - :patience::float8 * interval '1 ms')
                 ORDER BY b.prune_at LIMIT :limit) AS b
        UNION ALL
        SELECT 'streams', pg_catalog.min(s.at), pg_catalog.count(*), pg_catalog.min(s.name)
          FROM (SELECT s.name, e.at FROM {schema}.stream s
                 CROSS JOIN LATERAL (
                       SELECT e.at, e.version FROM {schema}.event e
                        WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name AND e.version >= s.first - 1
                        ORDER BY e.version -- uses the index with this order
                        LIMIT 1) AS e
                 WHERE s.shard = :shard AND s.workspace = :workspace AND s.pruned < s.first AND e.version = s.first - 1 AND e.at <= (SELECT {now} - :patience::float8 * interval '1 ms')
                 ORDER BY s.name LIMIT :limit) AS s) AS x
 WHERE x.n > 0
