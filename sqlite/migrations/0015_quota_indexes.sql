-- Indexes with which the use of quotas is counted.
-- min_reader: 14

CREATE INDEX holdfast_batch_open ON holdfast_batch (shard, workspace) WHERE status NOT IN ('CANCELLED', 'COMPLETED');
CREATE INDEX holdfast_api_key_valid ON holdfast_api_key (workspace, id) WHERE revoked_at IS NULL;
