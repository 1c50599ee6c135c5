-- ?1 shard, ?2 workspace, ?3 lifecycle, ?4 entity
-- do
SELECT e.status, e.version, e.data, e.created_at, e.updated_at
  FROM holdfast_entity AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?3 AND e.id = ?4
