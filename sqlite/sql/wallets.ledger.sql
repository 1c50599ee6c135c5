-- The ledger of a wallet, in its order.
-- ?1 shard, ?2 workspace, ?3 wallet, ?4 behind which row, ?5 limit
-- do
SELECT l.n, l.delta, l.balance, l.reason, l.reference, l.at
  FROM holdfast_ledger AS l
 WHERE l.shard = ?1 AND l.workspace = ?2 AND l.wallet = ?3 AND l.n > ?4
 ORDER BY l.n
 LIMIT +?5
