-- Calls of effects by holders that had lost their lease.
-- min_reader: 11

-- A row is written once. It changes no operation; seen_at is when a person acknowledged it.
CREATE TABLE holdfast_late_call (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    operation TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    ordinal   INTEGER NOT NULL CHECK (ordinal >= 0),
    epoch     INTEGER NOT NULL,
    state     TEXT    NOT NULL CHECK (state IN ('done', 'unknown')),
    id        TEXT    NOT NULL,
    subject   TEXT    NOT NULL,
    result    TEXT    NOT NULL,
    node      TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    seen_at   INTEGER,
    seen_by   TEXT,
    PRIMARY KEY (shard, workspace, operation, name, ordinal, epoch, state)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_late_call_unseen ON holdfast_late_call (shard, workspace, operation) WHERE seen_at IS NULL;
