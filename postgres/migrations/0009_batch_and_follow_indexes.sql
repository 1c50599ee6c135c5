-- Indexes of batches by time, and of streams on which a reaction fails.
-- min_reader: 3

-- Batches in the order of their creation, without bulks, of which there may be many more.
CREATE INDEX batch_created ON {schema}.batch (shard, workspace, created_at, id) WHERE about IS NULL;
-- A stream is in it from a failed attempt until the event succeeds or is skipped.
CREATE INDEX follow_failing ON {schema}.follow (shard, workspace, reaction, stream) WHERE failing IS NOT NULL;
