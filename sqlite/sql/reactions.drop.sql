-- Deletes a page of what a removed reaction has left, and tells how much it was,
-- a row for each.
-- ?1 shard, ?2 workspace, ?3 reaction, ?4 limit
-- do
DELETE FROM holdfast_follow AS f
 WHERE f.shard = ?1 AND f.workspace = ?2 AND f.reaction = ?3
   AND f.stream IN (SELECT x.stream FROM holdfast_follow AS x
                     WHERE x.shard = ?1 AND x.workspace = ?2 AND x.reaction = ?3
                     ORDER BY x.stream
                     LIMIT +?4)
   AND EXISTS (SELECT 1 FROM holdfast_reaction AS r
                WHERE r.shard = ?1 AND r.workspace = ?2 AND r.name = ?3 AND r.state = 'removed')
RETURNING 1
