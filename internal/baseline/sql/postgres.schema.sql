-- The tables of the engine that this is compared with: the same columns, keys,
-- indexes and fill factors.
CREATE SCHEMA {schema};

CREATE TABLE {schema}.stream (
    shard     smallint NOT NULL,
    workspace text     COLLATE "C" NOT NULL,
    name      text     COLLATE "C" NOT NULL,
    head      bigint   NOT NULL,
    PRIMARY KEY (shard, workspace, name)
) WITH (fillfactor = 80);

CREATE TABLE {schema}.event (
    shard       smallint    NOT NULL,
    id          uuid        NOT NULL,
    n           integer     NOT NULL,
    workspace   text        COLLATE "C" NOT NULL,
    stream      text        COLLATE "C" NOT NULL,
    version     bigint      NOT NULL,
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
    stream      text        COLLATE "C" NOT NULL,
    version     bigint      NOT NULL,
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
    status     text        COLLATE "C" NOT NULL,
    version    bigint      NOT NULL,
    data       jsonb       NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    phase      text        COLLATE "C" NOT NULL DEFAULT 'free',
    operation  text        COLLATE "C",
    step       text        COLLATE "C",
    requester  text        COLLATE "C",
    revert     text        COLLATE "C",
    input      json,
    manual     boolean     NOT NULL DEFAULT false,
    side       boolean     NOT NULL DEFAULT false,
    holder     text,
    epoch      bigint      NOT NULL DEFAULT 0,
    until      timestamptz,
    claimed_at timestamptz,
    due_at     timestamptz,
    begun      integer     NOT NULL DEFAULT 0,
    failures   integer     NOT NULL DEFAULT 0,
    deaths     integer     NOT NULL DEFAULT 0,
    error      text,
    outcome    text        COLLATE "C",
    queue      text        COLLATE "C",
    stage      text        COLLATE "C",
    PRIMARY KEY (shard, workspace, lifecycle, id)
) WITH (fillfactor = 80);

CREATE INDEX entity_held ON {schema}.entity (shard, until) WHERE holder IS NOT NULL;
CREATE INDEX entity_due ON {schema}.entity (shard, (coalesce(queue, 'l:' || lifecycle)), due_at) WHERE phase = 'due';
CREATE UNIQUE INDEX entity_open ON {schema}.entity (shard, workspace, operation) WHERE phase <> 'free';

CREATE TABLE {schema}.scope (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    kind       text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    version    bigint      NOT NULL,
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
    version    bigint      NOT NULL,
    state      text        COLLATE "C" NOT NULL,
    due_at     timestamptz NOT NULL,
    input      json        NOT NULL,
    output     json,
    error      text,
    failures   integer     NOT NULL,
    holder     text,
    epoch      bigint      NOT NULL,
    until      timestamptz,
    deaths     integer     NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, queue, id)
) WITH (fillfactor = 70);

CREATE INDEX task_due ON {schema}.task (shard, queue, due_at) WHERE state = 'due' AND holder IS NULL;
CREATE INDEX task_held ON {schema}.task (shard, until) WHERE holder IS NOT NULL;

-- The engine has no wallet to compare with yet.
CREATE TABLE {schema}.wallet (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    version    bigint      NOT NULL,
    balance    bigint      NOT NULL CHECK (balance >= 0),
    reserved   bigint      NOT NULL CHECK (reserved >= 0),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, id)
) WITH (fillfactor = 80);
