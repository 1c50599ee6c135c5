-- Holds that have run out, the oldest first, whether another death is one too
-- many, and what the reaction wants.
-- ?1 shard, ?2 workspace ('' for all), ?3 limit
-- do
SELECT f.workspace, f.reaction, f.stream, f.epoch, coalesce(f.holder, ''), NOT f.quiet AND f.deaths + 1 >= r.max_deaths, f.watermark, f.due, r.source, r.events
  FROM holdfast_follow AS f
  JOIN holdfast_reaction AS r ON r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction
 WHERE f.shard = ?1 AND (?2 = '' OR f.workspace = ?2)
   AND f.holder IS NOT NULL AND f.until <= {now}
 ORDER BY f.until
 LIMIT +?3
