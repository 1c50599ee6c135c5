-- Indexes of batches by time, and of streams on which a reaction fails.
-- min_reader: 3

-- Batches in the order of their creation, without bulks, of which there may be many more.
CREATE INDEX holdfast_batch_created ON holdfast_batch (shard, workspace, created_at, id) WHERE about IS NULL;
-- A stream is in it from a failed attempt until the event succeeds or is skipped.
CREATE INDEX holdfast_follow_failing ON holdfast_follow (shard, workspace, reaction, stream) WHERE failing IS NOT NULL;
