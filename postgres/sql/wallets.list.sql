-- Wallets in the order of their ids, or the one that is named.
-- $1 shard, $2 workspace, $3 wallet ('' for all), $4 behind which, $5 limit
SELECT w.id, w.balance, w.negative, w.version, w.created_at
  FROM {schema}.wallet w
 WHERE w.shard = $1::smallint AND w.workspace = $2::text AND ($3::text = '' OR w.id = $3) AND w.id > $4::text
 ORDER BY w.id
 LIMIT $5::bigint
