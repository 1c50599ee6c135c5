-- The workspaces in which there is something to number, of the streams that have
-- waited longest.
-- ?1 shard, ?2 workspace, not looked at, ?3 limit of streams
-- do
SELECT d.workspace
  FROM (SELECT f.workspace
          FROM holdfast_follow AS f
         WHERE f.shard = ?1 AND f.reaction = '$feed' AND ?2 IS NOT NULL
           AND f.holder IS NULL AND f.blocked = 0 AND f.due > f.watermark
         ORDER BY f.crash_group, f.rank -- as the index has it
         LIMIT +?3) AS d
 GROUP BY d.workspace
 ORDER BY d.workspace
