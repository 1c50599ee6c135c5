-- Lists wallets in the order of their ids, or returns one.
-- :from and :upto bound the ids; :after is left out
SELECT w.id, w.balance, w.negative, w.version, w.created_at
  FROM {schema}.wallet AS w
 WHERE w.shard = :shard AND w.workspace = :workspace AND w.id >= :from AND w.id <= :upto AND w.id <> :after
 ORDER BY w.id
 LIMIT :limit
