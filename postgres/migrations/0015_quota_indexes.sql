-- Indexes with which the use of quotas is counted.
-- min_reader: 14

-- An expression that only quotas/count_work has, so that no statement that looks for a handler or for one batch uses this index instead.
CREATE INDEX batch_open ON {schema}.batch ((0 + shard), workspace) WHERE status NOT IN ('CANCELLED', 'COMPLETED');
CREATE INDEX api_key_valid ON {schema}.api_key (workspace, id) WHERE revoked_at IS NULL;
