-- Counts ended batches by status, among the :limit newest. The index has no bulks.
SELECT x.name, {pg}count(*)
  FROM (SELECT t.status AS name FROM {schema}.batch AS t
         WHERE t.shard = :shard AND t.workspace = :workspace AND t.about IS NULL AND t.status IN ('CANCELLED', 'COMPLETED')
         ORDER BY t.created_at DESC, t.id DESC
         LIMIT :limit) AS x
 GROUP BY x.name
