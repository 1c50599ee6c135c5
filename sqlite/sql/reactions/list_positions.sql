-- Lists the positions of reactions, in the order of their names and streams.
SELECT f.reaction, r.source, f.stream, f.watermark, f.due,
       CASE WHEN r.source = 'event'
            THEN coalesce((SELECT s.head FROM holdfast_stream AS s WHERE s.shard = f.shard AND s.workspace = f.workspace AND s.name = f.stream), -1)
            ELSE coalesce((SELECT max(h.version) FROM holdfast_history AS h WHERE h.shard = f.shard AND h.workspace = f.workspace AND h.stream = f.stream), -1) END,
       f.failures, f.deaths, f.lost, f.blocked, coalesce(f.error, ''), coalesce(f.holder, ''), coalesce(f.until, 0), f.due_at,
       coalesce(f.failing, -1), f.epoch, f.generation,
       CASE WHEN f.delivered_epoch = f.epoch THEN f.delivered ELSE -1 END, coalesce(f.until > {now}, 0), f.reset_requested
  FROM holdfast_follow AS f
  JOIN holdfast_reaction AS r ON r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction AND r.state <> 'removed'
 WHERE f.shard = :shard AND f.workspace = :workspace AND (:reaction = '' OR f.reaction = :reaction)
   AND (:blocked IS NULL OR f.blocked = :blocked)
   AND (f.reaction, f.stream) > (:after_reaction, :after_stream)
 ORDER BY f.reaction, f.stream
 LIMIT :limit
