-- Lists expired leases, the oldest first, with whether one more crash is too many if it counts (see reactions.release_expired), what the reaction
-- wants, and the number of hand-outs lost in a row, this one included.
SELECT f.workspace, f.reaction, f.stream, f.epoch, coalesce(f.holder, ''), f.deaths + 1 >= r.max_deaths AND NOT f.quiet AND NOT f.reset_requested
           AND (f.crash_group = 1 OR f.crash_group = 0 AND NOT EXISTS (
                    SELECT 1 FROM holdfast_follow AS o INDEXED BY holdfast_follow_held
                     WHERE o.shard = f.shard AND (:workspace = '' OR o.workspace = :workspace) AND o.holder = f.holder AND o.holder IS NOT NULL AND NOT o.quiet
                       AND (o.workspace, o.reaction, o.stream) <> (f.workspace, f.reaction, f.stream))), f.watermark, f.due, r.source, r.events,
       CASE WHEN f.quiet AND NOT f.reset_requested THEN f.lost + 1 ELSE 0 END
  FROM holdfast_follow AS f
  JOIN holdfast_reaction AS r ON r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction
 WHERE f.shard = :shard AND (:workspace = '' OR f.workspace = :workspace)
   AND f.holder IS NOT NULL AND f.until <= {now}
 ORDER BY f.until
 LIMIT :limit
