-- Lists operations of a workspace that have not ended, after a given one.
SELECT e.lifecycle, e.id, coalesce(e.plan, ''), {include entities/result_columns coalesce(e.phase, 'free')}
  FROM holdfast_entity AS e INDEXED BY holdfast_entity_open
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.phase <> 'free'
   AND (:phase = '' OR e.phase = :phase) AND e.operation >= :from AND e.operation <= :upto AND e.operation <> :after
 ORDER BY e.operation
 LIMIT :limit
