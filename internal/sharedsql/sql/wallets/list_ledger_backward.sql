-- Lists the ledger of a wallet, the newest row first.
-- :after a row (0 for none)
SELECT l.n, l.delta, l.balance, l.reason, l.reference, l.at
  FROM {schema}.ledger AS l
 WHERE l.shard = :shard AND l.workspace = :workspace AND l.wallet = :wallet AND (:after = 0 OR l.n < :after)
 ORDER BY l.n DESC
 LIMIT :limit
