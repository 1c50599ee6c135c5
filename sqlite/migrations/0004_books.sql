-- Closing the books: how a stream was closed, and how far what it dropped is
-- deleted.
-- min_reader: 3

-- Rows below pruned are deleted; those from there to first wait for a sweep.
ALTER TABLE holdfast_stream ADD COLUMN closed TEXT
    CHECK (closed IN ('archive', 'tombstone')) CHECK ((closed IS NOT NULL) = (state = 'closed'));
ALTER TABLE holdfast_stream ADD COLUMN pruned INTEGER NOT NULL DEFAULT 0 CHECK (pruned >= 0);
CREATE INDEX holdfast_stream_unpruned ON holdfast_stream (shard, workspace, name) WHERE pruned < first;
