-- Moves the watermarks of a workspace's feed to what it has.
-- ?1 shard, ?2 workspace, ?3 limit of streams
-- look
SELECT 1
  FROM holdfast_follow AS f
 WHERE f.shard = ?1 AND f.workspace = ?2 AND f.reaction = '$feed'
   AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark
 LIMIT 1
-- do
UPDATE holdfast_follow AS f
   SET watermark = d.mark,
       due_at = CASE WHEN d.mark < f.due THEN {now} ELSE f.due_at END, -- after the others
       rank = CASE WHEN d.mark < f.due THEN {now} ELSE f.rank END
  FROM (SELECT x.stream,
               max(coalesce((SELECT s.first - 1 FROM holdfast_stream AS s
                              WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = x.stream), -1),
                   coalesce((SELECT max(o.version) FROM holdfast_feed AS o
                              WHERE o.shard = ?1 AND o.workspace = ?2 AND o.stream = x.stream), -1)) AS mark
          FROM holdfast_follow AS x
         WHERE x.shard = ?1 AND x.workspace = ?2 AND x.reaction = '$feed'
           AND x.holder IS NULL AND x.blocked = 0 AND x.due > x.watermark
         ORDER BY x.crash_group, x.rank
         LIMIT +?3) AS d
 WHERE f.shard = ?1 AND f.workspace = ?2 AND f.reaction = '$feed' AND f.stream = d.stream
   AND f.watermark < d.mark
RETURNING 1
