-- Lists wallets in the order of their ids, without that of bulks, or returns one.
-- :from and :upto bound the ids; :after is left out
SELECT w.id, w.balance, w.negative, w.version, w.created_at
  FROM {schema}.wallet AS w
 WHERE w.shard = :shard AND w.workspace = :workspace AND w.id >= :from AND w.id <= :upto AND w.id <> :after AND (w.id <> '$bulk' OR :from = '$bulk')
 ORDER BY w.id
 LIMIT :limit
