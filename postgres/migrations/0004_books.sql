-- Closing the books: how a stream was closed, and how far what it dropped is
-- deleted.
-- min_reader: 3

-- Rows below pruned are deleted; those from there to first wait for a sweep.
ALTER TABLE {schema}.stream
    ADD COLUMN closed text   COLLATE "C" CHECK (closed IN ('archive', 'tombstone')),
    ADD COLUMN pruned bigint NOT NULL DEFAULT 0 CHECK (pruned >= 0),
    ADD CHECK ((closed IS NOT NULL) = (state = 'closed'));
CREATE INDEX stream_unpruned ON {schema}.stream (shard, workspace, name) WHERE pruned < first;
