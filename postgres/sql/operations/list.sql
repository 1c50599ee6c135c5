-- Lists operations of a workspace that have not ended, after a given one.
-- :phase ('' for any); :from and :upto bound the operations; :after is left out
SELECT e.lifecycle, e.id, coalesce(e.plan::text, ''), {include entities/result_columns e}
  FROM {schema}.entity e
 WHERE e.shard + 0 = :shard AND e.workspace = :workspace AND e.phase <> 'free'
   AND (:phase = '' OR e.phase = :phase) AND e.operation >= :from AND e.operation <= :upto AND e.operation <> :after
 ORDER BY e.operation
 LIMIT :limit
