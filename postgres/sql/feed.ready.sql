-- The workspaces in which there is something to number, of the streams that have
-- waited longest.
-- $1 shard, $2 workspace, not looked at, $3 limit of streams
SELECT d.workspace
  FROM (SELECT f.workspace
          FROM {schema}.follow f
         WHERE f.shard = $1::smallint AND f.reaction = '$feed' AND $2::text IS NOT NULL
           AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark
         ORDER BY f.crash_group DESC, f.rank -- as the index has it
         LIMIT $3::bigint) d
 GROUP BY d.workspace
 ORDER BY d.workspace
