-- The queue and the stage of an entity's operation.
-- $1 shard, $2 workspace, $3 lifecycle, $4 entity
SELECT coalesce(e.queue, ''), coalesce(e.stage, '')
  FROM {schema}.entity e
 WHERE e.shard = $1::smallint AND e.workspace = $2::text AND e.lifecycle = $3::text AND e.id = $4::text
