-- Lists entities of a lifecycle, in the order of their ids, after a given one.
-- :status ('' for any)
SELECT e.lifecycle, e.id, coalesce(e.plan::text, ''), {include entities/result_columns e}
  FROM {schema}.entity e
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id > :after
   AND (:status = '' OR e.status = :status) AND NOT e.side
 ORDER BY e.id
 LIMIT :limit
