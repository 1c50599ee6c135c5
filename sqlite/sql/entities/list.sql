-- Lists entities of a lifecycle, in the order of their ids, after a given one.
SELECT e.lifecycle, e.id, coalesce(e.plan, ''), {include entities/result_columns coalesce(e.phase, 'free')}
  FROM holdfast_entity AS e
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id > :after
   AND (:status = '' OR e.status = :status) AND e.side = 0
 ORDER BY e.id
 LIMIT :limit
