-- Lists the runs among the first :scan whose keys are in a range, in the order of the keys. Keys of deleted runs (runs/delete)
-- have other ids.
SELECT x.id, x.key, x.status
  FROM (SELECT r.id, r.key, r.status
          FROM {schema}.run AS r
         WHERE r.shard = :shard AND r.workspace = :workspace AND r.key >= :from AND r.key < :upto
         ORDER BY r.key
         LIMIT :scan) AS x
 WHERE x.id >= 'run_'
 ORDER BY x.key
 LIMIT :limit
