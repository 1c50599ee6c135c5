-- Creates wallets, or changes whether their balance may be negative.
-- :negative whether the balance may be negative
WITH {members}, made AS (
    INSERT INTO {schema}.wallet AS w (shard, workspace, id, balance, negative, version, created_at, updated_at)
    SELECT m.shard, m.workspace, m.wallet, 0, m.negative = 1, 0, {now}, {now}
      FROM m
     ORDER BY m.shard, m.workspace, m.wallet
    ON CONFLICT (shard, workspace, id) DO UPDATE
       SET negative = excluded.negative, updated_at = excluded.updated_at
    RETURNING w.shard, w.workspace, w.id, w.balance, w.negative, w.version, w.created_at, w.updated_at
)
SELECT m.member, 1, made.balance, made.negative, made.version, made.created_at
  FROM m JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.id = m.wallet
