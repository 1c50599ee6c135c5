-- Deletes a removed reaction that has left nothing.
-- ?1 shard, ?2 workspace, ?3 reaction, ?4 what it waited for
-- do
DELETE FROM holdfast_reaction AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.name = ?3 AND r.state = 'removed' AND ?4 IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM holdfast_follow AS f WHERE f.shard = ?1 AND f.workspace = ?2 AND f.reaction = ?3)
RETURNING 1
