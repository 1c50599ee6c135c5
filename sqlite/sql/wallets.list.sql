-- Wallets in the order of their ids, or the one that is named.
-- ?1 shard, ?2 workspace, ?3 wallet ('' for all), ?4 behind which, ?5 limit
-- do
SELECT w.id, w.balance, w.negative, w.version, w.created_at
  FROM holdfast_wallet AS w
 WHERE w.shard = ?1 AND w.workspace = ?2 AND (?3 = '' OR w.id = ?3) AND w.id > ?4
 ORDER BY w.id
 LIMIT +?5
