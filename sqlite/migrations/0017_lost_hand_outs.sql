-- A hand-out that nobody was heard of again is no death.
-- min_reader: 15

-- quiet says that the lease was handed out to somebody elsewhere who was not heard of yet. lost counts the hand-outs
-- in a row of which nobody was: what they were of is handed out again after a pause, and fails by none of them.
ALTER TABLE holdfast_entity ADD COLUMN quiet INTEGER NOT NULL DEFAULT 0 CHECK (quiet IN (0, 1));
ALTER TABLE holdfast_entity ADD COLUMN lost INTEGER NOT NULL DEFAULT 0 CHECK (lost >= 0);
ALTER TABLE holdfast_step ADD COLUMN quiet INTEGER NOT NULL DEFAULT 0 CHECK (quiet IN (0, 1));
ALTER TABLE holdfast_step ADD COLUMN lost INTEGER NOT NULL DEFAULT 0 CHECK (lost >= 0);
ALTER TABLE holdfast_item ADD COLUMN quiet INTEGER NOT NULL DEFAULT 0 CHECK (quiet IN (0, 1));
ALTER TABLE holdfast_item ADD COLUMN lost INTEGER NOT NULL DEFAULT 0 CHECK (lost >= 0);
ALTER TABLE holdfast_follow ADD COLUMN quiet INTEGER NOT NULL DEFAULT 0 CHECK (quiet IN (0, 1));
ALTER TABLE holdfast_follow ADD COLUMN lost INTEGER NOT NULL DEFAULT 0 CHECK (lost >= 0);

CREATE INDEX holdfast_entity_lost ON holdfast_entity (shard, workspace) WHERE lost > 0;
CREATE INDEX holdfast_step_lost ON holdfast_step (shard, workspace) WHERE lost > 0;
CREATE INDEX holdfast_item_lost ON holdfast_item (shard, workspace) WHERE lost > 0;
CREATE INDEX holdfast_follow_lost ON holdfast_follow (shard, workspace) WHERE lost > 0;
