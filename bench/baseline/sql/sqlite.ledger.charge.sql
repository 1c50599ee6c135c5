INSERT INTO baseline_ledger (shard, workspace, wallet, n, delta, balance, reason, reference, at)
VALUES (?, ?, ?, ?, ?, ?, 'charge', ?, ?)
