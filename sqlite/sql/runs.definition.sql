-- A definition of a workspace.
-- ?1 shard, ?2 workspace, ?3 definition
-- do
SELECT d.id, d.body, d.created_at
  FROM holdfast_definition AS d
 WHERE d.shard = ?1 AND d.workspace = ?2 AND d.id = ?3
