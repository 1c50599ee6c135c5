-- Definitions of a workspace, by their ids, behind one of them.
-- ?1 shard, ?2 workspace, ?3 behind, ?4 limit
-- do
SELECT d.id, d.body, d.created_at
  FROM holdfast_definition AS d
 WHERE d.shard = ?1 AND d.workspace = ?2 AND d.id > ?3
 ORDER BY d.id
 LIMIT +?4
