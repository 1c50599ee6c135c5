-- Tasks: work that somebody takes, holds and settles.
-- min_reader: 1

-- A hold is four columns on the row of the thing held: who has it, under which
-- epoch, until when, and how many have died holding it. The epoch only grows.
CREATE TABLE holdfast_task (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    queue      TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    version    INTEGER NOT NULL CHECK (version >= 0),
    state      TEXT    NOT NULL CHECK (state IN ('due', 'done', 'failed', 'dead')),
    due_at     INTEGER NOT NULL,
    input      TEXT    NOT NULL,
    output     TEXT,
    error      TEXT,
    failures   INTEGER NOT NULL CHECK (failures >= 0),
    holder     TEXT,
    epoch      INTEGER NOT NULL CHECK (epoch >= 0),
    until      INTEGER,
    deaths     INTEGER NOT NULL CHECK (deaths >= 0),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, queue, id),
    CHECK ((holder IS NULL) = (until IS NULL)),
    CHECK (holder IS NULL OR state = 'due')
) STRICT, WITHOUT ROWID;

-- Only live work is in the indexes: what is finished costs nothing.
CREATE INDEX holdfast_task_due ON holdfast_task (shard, queue, due_at) WHERE state = 'due' AND holder IS NULL;
CREATE INDEX holdfast_task_held ON holdfast_task (shard, until) WHERE holder IS NOT NULL;
