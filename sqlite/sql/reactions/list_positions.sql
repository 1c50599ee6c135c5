-- Lists the positions of reactions, in the order of their names and streams.
-- unused: reaction
SELECT f.reaction, r.source, f.stream, f.watermark, f.due,
       CASE WHEN r.source = 'event'
            THEN coalesce((SELECT s.head FROM holdfast_stream AS s WHERE s.shard = f.shard AND s.workspace = f.workspace AND s.name = f.stream), -1)
            ELSE coalesce((SELECT max(h.version) FROM holdfast_history AS h WHERE h.shard = f.shard AND h.workspace = f.workspace AND h.stream = f.stream), -1) END,
       f.failures, f.deaths, f.lost, f.blocked, coalesce(f.error, ''), coalesce(f.holder, ''), coalesce(f.until, 0), f.due_at,
       coalesce(f.failing, -1), f.epoch, f.generation,
       CASE WHEN f.delivered_epoch = f.epoch THEN f.delivered ELSE -1 END, coalesce(f.until > {now}, 0), f.reset_requested
  FROM (
       SELECT * FROM (
       SELECT f.* FROM holdfast_follow AS f INDEXED BY holdfast_follow_blocked
        WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction <= :last AND (f.reaction, f.stream) > (:after_reaction, :after_stream)
          AND f.blocked = 1 AND :blocked = 1
          AND EXISTS (SELECT 1 FROM holdfast_reaction AS r WHERE r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction AND r.state <> 'removed')
        ORDER BY f.reaction, f.stream
        LIMIT :limit)
       UNION ALL
       SELECT * FROM (
       SELECT f.* FROM holdfast_follow AS f INDEXED BY holdfast_follow_failing
        WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction <= :last AND (f.reaction, f.stream) > (:after_reaction, :after_stream)
          AND f.failing IS NOT NULL AND :failing = 1 AND f.blocked = 0
          AND EXISTS (SELECT 1 FROM holdfast_reaction AS r WHERE r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction AND r.state <> 'removed')
        ORDER BY f.reaction, f.stream
        LIMIT :limit)
       UNION ALL
       SELECT * FROM (
       SELECT f.* FROM holdfast_follow AS f
        WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction <= :last AND (f.reaction, f.stream) > (:after_reaction, :after_stream)
          AND coalesce(:blocked, 0) + :failing = 0 AND (:blocked IS NULL OR f.blocked = 0)
          AND EXISTS (SELECT 1 FROM holdfast_reaction AS r WHERE r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction AND r.state <> 'removed')
        ORDER BY f.reaction, f.stream
        LIMIT :limit)) AS f
  JOIN holdfast_reaction AS r ON r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction
 ORDER BY f.reaction, f.stream
 LIMIT :limit
