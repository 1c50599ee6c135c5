-- The writes that were refused, and whom they lost to.
-- min_reader: 3

-- Replaces attempt, whose rows are deleted: it had only refused steps of entities, for a week. stream is that of the object.
-- version is the version that the object had when it refused the write, so a refusal comes after the event of that version
-- and before the next. operation is the one that was in progress or, with its epoch, that of a late holder. stands_for is
-- how many refusals the row stands for.
DROP TABLE holdfast_attempt;
CREATE TABLE holdfast_refusal (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    stream     TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    action     TEXT    NOT NULL,
    requester  TEXT    NOT NULL,
    actor      TEXT    NOT NULL,
    node       TEXT    NOT NULL,
    request    TEXT    NOT NULL,
    code       TEXT    NOT NULL,
    operation  TEXT    NOT NULL,
    epoch      INTEGER NOT NULL,
    stands_for INTEGER NOT NULL CHECK (stands_for > 0),
    detail     TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_refusal_stream ON holdfast_refusal (shard, workspace, stream, version, id);
CREATE INDEX holdfast_refusal_at ON holdfast_refusal (shard, at);
