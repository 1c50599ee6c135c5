-- Two indexes from which polls read only what is due.
-- min_reader: 1

-- Within a reaction, streams come in the order of due_at, which leaves out those that wait for a retry; rank only orders
-- reactions. Crashed groups come first.
DROP INDEX {schema}.follow_ready;
CREATE INDEX follow_ready ON {schema}.follow (shard, reaction, workspace, crash_group DESC, due_at)
    WHERE holder IS NULL AND NOT blocked AND due > watermark;

-- It begins with another expression than entity_due, so that a statement cannot use entity_due for it, and read what is
-- due in all workspaces.
DROP INDEX {schema}.entity_turn;
CREATE INDEX entity_turn ON {schema}.entity ((0 + shard), (coalesce(queue, 'l:' || lifecycle)), workspace, due_at) WHERE phase = 'due';
