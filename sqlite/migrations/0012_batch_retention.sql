-- Deleting the items of batches that have ended.
-- min_reader: 10

-- keep is the retention in ms, null for ever. prune_at is when the items of a batch that has ended are due to be deleted, and pruned_at
-- when that began: the batch, with its counts and sums, stays.
ALTER TABLE holdfast_batch ADD COLUMN keep INTEGER;
ALTER TABLE holdfast_batch ADD COLUMN prune_at INTEGER;
ALTER TABLE holdfast_batch ADD COLUMN pruned_at INTEGER;
CREATE INDEX holdfast_batch_prune ON holdfast_batch (shard, prune_at) WHERE prune_at IS NOT NULL;
