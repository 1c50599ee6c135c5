-- Lists what should have been deleted :patience ago or earlier: runs whose retention has ended, items of batches, and events that a truncate
-- or a close has removed, with their count up to :limit.
SELECT x.kind, x.since, '', 0, x.kind, CAST(x.n AS TEXT), x.subject, '', ''
  FROM (
        SELECT 'runs' AS kind, min(r.prune_at) AS since, count(*) AS n, r.id AS subject
          FROM (SELECT r.prune_at, r.id FROM holdfast_run AS r INDEXED BY holdfast_run_prune
                 WHERE r.shard = :shard AND r.workspace = :workspace AND r.prune_at IS NOT NULL AND r.prune_at <= {now} - :patience
                 ORDER BY r.prune_at LIMIT :limit) AS r
        UNION ALL
        SELECT 'batches', min(b.prune_at), count(*), b.id
          FROM (SELECT b.prune_at, b.id FROM holdfast_batch AS b INDEXED BY holdfast_batch_prune
                 WHERE b.shard = :shard AND b.workspace = :workspace AND b.prune_at IS NOT NULL AND b.prune_at <= {now} - :patience
                 ORDER BY b.prune_at LIMIT :limit) AS b
        UNION ALL
        SELECT 'streams', min(s.at), count(*), s.name
          FROM (SELECT s.name, e.at FROM holdfast_stream AS s INDEXED BY holdfast_stream_unpruned
                 CROSS JOIN holdfast_event AS e ON e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name AND e.version = s.first - 1
                 WHERE s.shard = :shard AND s.workspace = :workspace AND s.pruned < s.first AND e.at <= {now} - :patience
                 ORDER BY s.name LIMIT :limit) AS s) AS x
 WHERE x.n > 0
