-- Returns the current entity to a refused caller.
SELECT {include entities/result_columns coalesce(e.phase, 'free')}
  FROM (SELECT 1) LEFT JOIN holdfast_entity AS e
    ON e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
