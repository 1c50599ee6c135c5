-- Lifecycles: entities that are held in a claim, the effects of what is done
-- under it, the configs, and who was refused.
-- min_reader: 5

-- phase: free; held, by a holder, until it runs out; due, to be resumed by
-- whoever has its handler; uncertain, until a person says what happened. What an
-- operation was stays on the row until the next: so who ends it again is told the
-- same. begun counts the effects that may have happened. manual is a claim that
-- nobody resumes. side is the row beside one in a table of the user's own, which
-- has the status that was last seen there.
ALTER TABLE holdfast_entity ADD COLUMN phase TEXT NOT NULL DEFAULT 'free' CHECK (phase IN ('free', 'held', 'due', 'uncertain'));
ALTER TABLE holdfast_entity ADD COLUMN operation TEXT CHECK (phase = 'free' OR operation IS NOT NULL);
ALTER TABLE holdfast_entity ADD COLUMN step TEXT;
ALTER TABLE holdfast_entity ADD COLUMN requester TEXT;
ALTER TABLE holdfast_entity ADD COLUMN revert TEXT CHECK (phase = 'free' OR revert IS NOT NULL);
ALTER TABLE holdfast_entity ADD COLUMN input TEXT;
ALTER TABLE holdfast_entity ADD COLUMN manual INTEGER NOT NULL DEFAULT 0 CHECK (manual IN (0, 1));
ALTER TABLE holdfast_entity ADD COLUMN side INTEGER NOT NULL DEFAULT 0 CHECK (side IN (0, 1));
ALTER TABLE holdfast_entity ADD COLUMN holder TEXT CHECK ((holder IS NOT NULL) = (phase = 'held'));
ALTER TABLE holdfast_entity ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0);
ALTER TABLE holdfast_entity ADD COLUMN until INTEGER CHECK ((holder IS NULL) = (until IS NULL));
ALTER TABLE holdfast_entity ADD COLUMN claimed_at INTEGER;
ALTER TABLE holdfast_entity ADD COLUMN due_at INTEGER CHECK (phase <> 'due' OR due_at IS NOT NULL);
ALTER TABLE holdfast_entity ADD COLUMN begun INTEGER NOT NULL DEFAULT 0 CHECK (begun >= 0);
ALTER TABLE holdfast_entity ADD COLUMN failures INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0);
ALTER TABLE holdfast_entity ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0 CHECK (deaths >= 0);
ALTER TABLE holdfast_entity ADD COLUMN error TEXT;
ALTER TABLE holdfast_entity ADD COLUMN outcome TEXT;
CREATE INDEX holdfast_entity_held ON holdfast_entity (shard, until) WHERE holder IS NOT NULL;
CREATE INDEX holdfast_entity_due ON holdfast_entity (shard, lifecycle, due_at) WHERE phase = 'due';
CREATE UNIQUE INDEX holdfast_entity_open ON holdfast_entity (shard, workspace, operation) WHERE phase <> 'free';

-- An effect, known by its operation, its name and the how-manieth of that name it
-- is. epoch is that of the attempt which began it last.
CREATE TABLE holdfast_effect (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    operation TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    ordinal   INTEGER NOT NULL CHECK (ordinal >= 0),
    epoch     INTEGER NOT NULL,
    state     TEXT    NOT NULL CHECK (state IN ('begun', 'done', 'notDone')),
    policy    TEXT    NOT NULL CHECK (policy IN ('retry', 'probe', 'hold')),
    result    TEXT,
    begun_at  INTEGER NOT NULL,
    ended_at  INTEGER,
    PRIMARY KEY (shard, workspace, operation, name, ordinal),
    CHECK ((state = 'begun') = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;

-- A lifecycle's config, as it is in force. While a change is looked into, wanted
-- is what is to come, and both are obeyed.
CREATE TABLE holdfast_lifecycle (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    revision   INTEGER NOT NULL CHECK (revision > 0),
    statuses   TEXT    NOT NULL,
    config     TEXT    NOT NULL,
    wanted     TEXT,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, name)
) STRICT, WITHOUT ROWID;

-- Who tried a step and was refused, as far as it could be noted.
CREATE TABLE holdfast_attempt (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    lifecycle TEXT    NOT NULL,
    entity    TEXT    NOT NULL,
    id        TEXT    NOT NULL,
    step      TEXT    NOT NULL,
    requester TEXT    NOT NULL,
    code      TEXT    NOT NULL,
    detail    TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, lifecycle, entity, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_attempt_at ON holdfast_attempt (shard, at);
