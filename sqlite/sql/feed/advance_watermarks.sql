-- Moves the watermarks of a workspace's feed to the last numbered events.
-- look
SELECT 1
  FROM holdfast_follow AS f
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = '$feed'
   AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark
 LIMIT 1
-- do
UPDATE holdfast_follow AS f
   SET watermark = d.mark,
       due_at = CASE WHEN d.mark < f.due THEN {now} ELSE f.due_at END, -- goes behind the others
       rank = CASE WHEN d.mark < f.due THEN {now} ELSE f.rank END
  FROM (SELECT x.stream,
               max(coalesce((SELECT s.first - 1 FROM holdfast_stream AS s
                              WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = x.stream), -1),
                   coalesce((SELECT max(o.version) FROM holdfast_feed AS o
                              WHERE o.shard = :shard AND o.workspace = :workspace AND o.stream = x.stream), -1)) AS mark
          FROM holdfast_follow AS x
         WHERE x.shard = :shard AND x.workspace = :workspace AND x.reaction = '$feed'
           AND x.holder IS NULL AND x.blocked = 0 AND x.due > x.watermark
         ORDER BY x.crash_group, x.rank
         LIMIT :streams) AS d
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = '$feed' AND f.stream = d.stream
   AND f.watermark < d.mark
RETURNING watermark < due
