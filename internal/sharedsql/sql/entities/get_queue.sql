-- Returns the queue and the stage of an entity's operation.
SELECT coalesce(e.queue, ''), coalesce(e.stage, '')
  FROM {schema}.entity AS e
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
