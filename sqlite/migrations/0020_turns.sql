-- What is due is found for each workspace by itself, so that they are served in turn.
-- min_reader: 19
DROP INDEX holdfast_follow_ready;
CREATE INDEX holdfast_follow_ready ON holdfast_follow (shard, reaction, workspace, crash_group, rank)
    WHERE holder IS NULL AND blocked = 0 AND due > watermark;
CREATE INDEX holdfast_entity_turn ON holdfast_entity (shard, coalesce(queue, 'l:' || lifecycle), workspace, due_at) WHERE phase = 'due';
CREATE INDEX holdfast_step_turn ON holdfast_step (shard, handler, workspace, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX holdfast_item_turn ON holdfast_item (shard, workspace, sweep_at) WHERE sweep_at IS NOT NULL;
