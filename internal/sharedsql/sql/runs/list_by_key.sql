-- Lists the runs whose keys are in a range, in the order of the keys. Keys of deleted runs (runs/delete) have other ids.
SELECT r.id, r.key, r.status
  FROM {schema}.run AS r
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.key >= :from AND r.key < :upto AND r.id >= 'run_'
 ORDER BY r.key
 LIMIT :limit
