-- Lists wallets in the order of their ids, without that of bulks, or returns one.
-- :wallet ('' for all)
SELECT w.id, w.balance, w.negative, w.version, w.created_at
  FROM {schema}.wallet AS w
 WHERE w.shard = :shard AND w.workspace = :workspace AND (:wallet = '' AND w.id <> '$bulk' OR w.id = :wallet) AND w.id > :after
 ORDER BY w.id
 LIMIT :limit
