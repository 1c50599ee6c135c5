INSERT INTO baseline_wallet (shard, workspace, id, version, balance, created_at, updated_at)
VALUES (?1, ?2, ?3, 0, ?4, ?5, ?5) ON CONFLICT (shard, workspace, id) DO UPDATE
SET version = version + 1, balance = excluded.balance, updated_at = excluded.updated_at
