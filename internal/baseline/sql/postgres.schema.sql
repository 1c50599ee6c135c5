-- The tables of the engine that this is compared with: the same columns, keys,
-- indexes, checks and fill factors.
CREATE SCHEMA {schema};

CREATE TABLE {schema}.stream (
    shard     smallint NOT NULL,
    workspace text     COLLATE "C" NOT NULL,
    name      text     COLLATE "C" NOT NULL CHECK (name <> '' AND left(name, 1) <> '$'),
    head      bigint   NOT NULL CHECK (head >= 0),
    PRIMARY KEY (shard, workspace, name)
) WITH (fillfactor = 80);

CREATE TABLE {schema}.event (
    shard       smallint    NOT NULL,
    id          uuid        NOT NULL,
    n           integer     NOT NULL,
    workspace   text        COLLATE "C" NOT NULL,
    stream      text        COLLATE "C" NOT NULL,
    version     bigint      NOT NULL CHECK (version >= 0),
    name        text        NOT NULL,
    data        json        NOT NULL,
    correlation text,
    causation   text,
    actor       text,
    at          timestamptz NOT NULL,
    PRIMARY KEY (shard, id, n),
    UNIQUE (shard, workspace, stream, version)
);

CREATE TABLE {schema}.history (
    shard       smallint    NOT NULL,
    id          uuid        NOT NULL,
    n           integer     NOT NULL,
    workspace   text        COLLATE "C" NOT NULL,
    stream      text        COLLATE "C" NOT NULL CHECK (left(stream, 1) = '$'),
    version     bigint      NOT NULL CHECK (version >= 0),
    name        text        NOT NULL,
    data        json        NOT NULL,
    correlation text,
    causation   text,
    actor       text,
    at          timestamptz NOT NULL,
    PRIMARY KEY (shard, id, n),
    UNIQUE (shard, workspace, stream, version)
);

CREATE TABLE {schema}.entity (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    lifecycle  text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    status     text        COLLATE "C" NOT NULL CHECK (status <> ''),
    version    bigint      NOT NULL CHECK (version >= 0),
    data       jsonb       NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, lifecycle, id)
) WITH (fillfactor = 80);

CREATE TABLE {schema}.scope (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    kind       text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    version    bigint      NOT NULL CHECK (version >= 0),
    state      jsonb,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, kind, id)
) WITH (fillfactor = 80);

CREATE TABLE {schema}.task (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    queue      text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    version    bigint      NOT NULL CHECK (version >= 0),
    state      text        COLLATE "C" NOT NULL CHECK (state IN ('due', 'done', 'failed', 'dead')),
    due_at     timestamptz NOT NULL,
    input      json        NOT NULL,
    output     json,
    error      text,
    failures   integer     NOT NULL CHECK (failures >= 0),
    holder     text,
    epoch      bigint      NOT NULL CHECK (epoch >= 0),
    until      timestamptz,
    deaths     integer     NOT NULL CHECK (deaths >= 0),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, queue, id),
    CHECK ((holder IS NULL) = (until IS NULL)),
    CHECK (holder IS NULL OR state = 'due')
) WITH (fillfactor = 70);

CREATE INDEX task_due ON {schema}.task (shard, queue, due_at) WHERE state = 'due' AND holder IS NULL;
CREATE INDEX task_held ON {schema}.task (shard, until) WHERE holder IS NOT NULL;

-- The engine has no wallet to compare with yet.
CREATE TABLE {schema}.wallet (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    version    bigint      NOT NULL CHECK (version >= 0),
    balance    bigint      NOT NULL CHECK (balance >= 0),
    reserved   bigint      NOT NULL CHECK (reserved >= 0),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, id)
) WITH (fillfactor = 80);
