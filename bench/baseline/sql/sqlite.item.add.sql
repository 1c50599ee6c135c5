INSERT INTO baseline_item (shard, workspace, batch, key, n, cost, charged, state, input, failures, epoch, deaths, sweeps, dirty, updated_at)
VALUES (?, ?, ?, ?, ?, ?, 0, 'pending', ?, 0, 0, 0, 0, 0, ?)
