-- Makes a wallet, or changes whether it may be below zero.
-- ?1 shard, ?2 workspace, ?3 command, ?4 wallet, ?5 whether it may be below zero
-- do
INSERT INTO holdfast_wallet AS w (shard, workspace, id, balance, negative, version, created_at, updated_at)
SELECT ?1, ?2, ?4, 0, ?5, 0, t.now, t.now FROM (SELECT {now} AS now) AS t WHERE true
ON CONFLICT (shard, workspace, id) DO UPDATE
   SET negative = excluded.negative, updated_at = excluded.updated_at
RETURNING balance, negative, version, created_at
