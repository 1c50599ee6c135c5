-- The queue and the stage of an entity's operation.
-- ?1 shard, ?2 workspace, ?3 lifecycle, ?4 entity
-- do
SELECT coalesce(e.queue, ''), coalesce(e.stage, '')
  FROM holdfast_entity AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?3 AND e.id = ?4
