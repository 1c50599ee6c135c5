-- The ledger of a wallet, in its order.
-- $1 shard, $2 workspace, $3 wallet, $4 behind which row, $5 limit
SELECT l.n, l.delta, l.balance, l.reason, l.reference, l.at
  FROM {schema}.ledger l
 WHERE l.shard = $1::smallint AND l.workspace = $2::text AND l.wallet = $3::text AND l.n > $4::bigint
 ORDER BY l.n
 LIMIT $5::bigint
