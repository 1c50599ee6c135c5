-- $1 shard, $2 workspace, $3 wallet, $4 balance
INSERT INTO {schema}.wallet (shard, workspace, id, version, balance, created_at, updated_at)
VALUES ($1, $2, $3, 0, $4, clock_timestamp(), clock_timestamp())
ON CONFLICT (shard, workspace, id) DO UPDATE
   SET version = wallet.version + 1, balance = excluded.balance, updated_at = excluded.updated_at
