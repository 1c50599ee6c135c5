-- Lists operations that wait until a person says what happened.
SELECT e.operation, e.updated_at, coalesce(e.requester, ''), 0, e.lifecycle, e.id, coalesce(e.step, ''), coalesce(substr(e.error, 1, 500), ''), CASE WHEN e.manual THEN 'manual' ELSE '' END
  FROM holdfast_entity AS e INDEXED BY holdfast_entity_uncertain
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.phase = 'uncertain' AND e.operation IS NOT NULL
 ORDER BY e.operation
 LIMIT :limit
