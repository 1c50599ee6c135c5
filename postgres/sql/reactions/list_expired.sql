-- Lists expired leases, the oldest first, with whether one more crash is too many if it
-- counts (see reactions.release_expired), what the reaction wants, and the number of hand-outs lost in
-- a row, this one included.
SELECT f.workspace, f.reaction, f.stream, f.epoch, coalesce(f.holder, ''), f.deaths + 1 >= r.max_deaths AND NOT f.quiet AND NOT f.reset_requested
           AND (f.crash_group = 1 OR f.crash_group = 0 AND NOT EXISTS (
                    SELECT 1 FROM {schema}.follow o
                     WHERE o.shard + 0 = f.shard AND (:workspace = '' OR o.workspace = :workspace) AND o.holder = f.holder AND o.holder IS NOT NULL AND NOT o.quiet
                       AND (o.workspace, o.reaction, o.stream) <> (f.workspace, f.reaction, f.stream))), f.watermark, f.due, r.source, r.events::text,
       CASE WHEN f.quiet AND NOT f.reset_requested THEN f.lost + 1 ELSE 0 END
  FROM {schema}.follow f
 CROSS JOIN LATERAL (
       SELECT r.max_deaths, r.source, r.events FROM {schema}.reaction r
        WHERE r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction
        LIMIT 1) AS r
 WHERE f.shard + 0 = :shard AND (:workspace = '' OR f.workspace = :workspace)
   AND f.holder IS NOT NULL AND f.until <= (SELECT {now})
 ORDER BY f.until
 LIMIT :limit
