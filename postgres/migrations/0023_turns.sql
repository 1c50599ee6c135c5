-- What is due is found for each workspace by itself, so that they are served in turn.
-- min_reader: 22
DROP INDEX {schema}.follow_ready;
CREATE INDEX follow_ready ON {schema}.follow (shard, reaction, workspace, crash_group DESC, rank)
    WHERE holder IS NULL AND NOT blocked AND due > watermark;
CREATE INDEX entity_turn ON {schema}.entity ((shard + 0), (coalesce(queue, 'l:' || lifecycle)), workspace, due_at) WHERE phase = 'due';
CREATE INDEX step_turn ON {schema}.step ((shard + 0), handler, workspace, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX item_turn ON {schema}.item ((shard + 0), workspace, sweep_at) WHERE sweep_at IS NOT NULL;
