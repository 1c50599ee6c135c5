-- Calls of effects by holders that had lost their lease.
-- min_reader: 12

-- A row is written once. It changes no operation; seen_at is when a person acknowledged it.
CREATE TABLE {schema}.late_call (
    shard     smallint    NOT NULL,
    workspace text        COLLATE "C" NOT NULL,
    operation text        COLLATE "C" NOT NULL,
    name      text        COLLATE "C" NOT NULL,
    ordinal   integer     NOT NULL CHECK (ordinal >= 0),
    epoch     bigint      NOT NULL,
    state     text        COLLATE "C" NOT NULL CHECK (state IN ('done', 'unknown')),
    id        uuid        NOT NULL,
    subject   text        NOT NULL,
    result    json        NOT NULL,
    node      text        NOT NULL,
    at        timestamptz NOT NULL,
    seen_at   timestamptz,
    seen_by   text,
    PRIMARY KEY (shard, workspace, operation, name, ordinal, epoch, state)
);
CREATE INDEX late_call_unseen ON {schema}.late_call (shard, workspace, operation) WHERE seen_at IS NULL;
