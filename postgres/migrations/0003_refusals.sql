-- The writes that were refused, and whom they lost to.
-- min_reader: 3

-- Replaces attempt, whose rows are deleted: it had only refused steps of entities, for a week. stream is that of the object.
-- version is the version that the object had when it refused the write, so a refusal comes after the event of that version
-- and before the next. operation is the one that was in progress or, with its epoch, that of a late holder. stands_for is
-- how many refusals the row stands for.
DROP TABLE {schema}.attempt;
CREATE TABLE {schema}.refusal (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    stream     text        COLLATE "C" NOT NULL,
    version    bigint      NOT NULL,
    action     text        COLLATE "C" NOT NULL,
    requester  text        COLLATE "C" NOT NULL,
    actor      text        NOT NULL,
    node       text        NOT NULL,
    request    text        NOT NULL,
    code       text        COLLATE "C" NOT NULL,
    operation  text        COLLATE "C" NOT NULL,
    epoch      bigint      NOT NULL,
    stands_for bigint      NOT NULL CHECK (stands_for > 0),
    detail     json        NOT NULL,
    at         timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, id)
);
CREATE INDEX refusal_stream ON {schema}.refusal (shard, workspace, stream, version, id);
CREATE INDEX refusal_at ON {schema}.refusal (shard, at);
