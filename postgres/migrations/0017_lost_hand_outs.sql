-- A hand-out that nobody was heard of again is no death.
-- min_reader: 15

-- quiet says that the lease was handed out to somebody elsewhere who was not heard of yet. lost counts the hand-outs
-- in a row of which nobody was: what they were of is handed out again after a pause, and fails by none of them.
ALTER TABLE {schema}.entity
    ADD COLUMN quiet boolean NOT NULL DEFAULT false,
    ADD COLUMN lost bigint NOT NULL DEFAULT 0;
ALTER TABLE {schema}.step
    ADD COLUMN quiet boolean NOT NULL DEFAULT false,
    ADD COLUMN lost bigint NOT NULL DEFAULT 0;
ALTER TABLE {schema}.item
    ADD COLUMN quiet boolean NOT NULL DEFAULT false,
    ADD COLUMN lost bigint NOT NULL DEFAULT 0;
ALTER TABLE {schema}.follow
    ADD COLUMN quiet boolean NOT NULL DEFAULT false,
    ADD COLUMN lost bigint NOT NULL DEFAULT 0;

CREATE INDEX entity_lost ON {schema}.entity (shard, workspace) WHERE lost > 0;
CREATE INDEX step_lost ON {schema}.step (shard, workspace) WHERE lost > 0;
CREATE INDEX item_lost ON {schema}.item (shard, workspace) WHERE lost > 0;
CREATE INDEX follow_lost ON {schema}.follow (shard, workspace) WHERE lost > 0;
