-- Selects the entity.
FROM holdfast_entity AS e
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
