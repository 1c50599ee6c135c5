-- Lists the ledger of a wallet, the newest row first, before a given one.
SELECT l.n, l.delta, l.balance, l.reason, l.reference, l.at
  FROM {schema}.ledger AS l
 WHERE l.shard = :shard AND l.workspace = :workspace AND l.wallet = :wallet AND l.n < :after
 ORDER BY l.n DESC
 LIMIT :limit
