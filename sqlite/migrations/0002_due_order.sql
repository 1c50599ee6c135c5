-- An index from which polls read only what is due.
-- min_reader: 1

-- Within a reaction, streams come in the order of due_at, which leaves out those that wait for a retry; rank only orders
-- reactions.
DROP INDEX holdfast_follow_ready;
CREATE INDEX holdfast_follow_ready ON holdfast_follow (shard, reaction, workspace, crash_group, due_at)
    WHERE holder IS NULL AND blocked = 0 AND due > watermark;
