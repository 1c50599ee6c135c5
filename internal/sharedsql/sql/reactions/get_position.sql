-- Returns the position of a reaction on one stream. The head is that of the stream, or of
-- the history.
SELECT f.reaction, r.source, f.stream, f.watermark, f.due,
       CASE WHEN r.source = 'event'
            THEN coalesce((SELECT s.head FROM {schema}.stream AS s WHERE s.shard = f.shard AND s.workspace = f.workspace AND s.name = f.stream), -1)
            ELSE coalesce((SELECT {pg}max(h.version) FROM {schema}.history AS h WHERE h.shard = f.shard AND h.workspace = f.workspace AND h.stream = f.stream), -1) END,
       f.failures, f.deaths, f.lost, f.blocked, coalesce(f.error, ''), coalesce(f.holder, ''), coalesce(f.until, {no_time}), f.due_at,
       coalesce(f.failing, -1), f.epoch, f.generation,
       CASE WHEN f.delivered_epoch = f.epoch THEN f.delivered ELSE -1 END, coalesce(f.until > {now}, false), f.reset_requested
  FROM {schema}.follow AS f
  JOIN {schema}.reaction AS r ON r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction AND r.state <> 'removed'
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = :reaction AND f.stream = :stream
