-- Indexes with which the use of quotas is counted.
-- min_reader: 14

-- An expression, so that a statement that looks for one batch cannot use the workspace instead, and read all of its live batches.
CREATE INDEX batch_open ON {schema}.batch ((shard + 0), workspace) WHERE status NOT IN ('CANCELLED', 'COMPLETED');
CREATE INDEX api_key_valid ON {schema}.api_key (workspace, id) WHERE revoked_at IS NULL;
CREATE INDEX webhook_live ON {schema}.webhook (shard, workspace, id) WHERE removed_at IS NULL;
