-- Creates a wallet, or changes whether its balance may be negative.
INSERT INTO holdfast_wallet AS w (shard, workspace, id, balance, negative, version, created_at, updated_at)
SELECT :shard, :workspace, :wallet, 0, :negative, 0, t.now, t.now FROM (SELECT {now} AS now) AS t WHERE true
ON CONFLICT (shard, workspace, id) DO UPDATE
   SET negative = excluded.negative, updated_at = excluded.updated_at
RETURNING balance, negative, version, created_at
