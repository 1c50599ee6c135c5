-- Lists workspaces in the order of their names.
-- :name the only name, '' for all
SELECT w.name, w.created_at
  FROM {schema}.workspace AS w
 WHERE w.name > :after AND (:name = '' OR w.name = :name) AND :shard IS NOT NULL AND :workspace IS NOT NULL
 ORDER BY w.name
 LIMIT :limit
