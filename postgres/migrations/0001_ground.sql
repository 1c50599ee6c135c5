-- The ground: time, workspaces, streams with their events, the history of
-- everything else, entities and scopes. Key columns compare as bytes
-- (COLLATE "C"), which is faster and is the order that SQLite has.
-- min_reader: 1

-- One row: how far tests have moved the database's time.
CREATE TABLE {schema}.clock (
    one   boolean  NOT NULL PRIMARY KEY CHECK (one),
    shift interval NOT NULL
);
INSERT INTO {schema}.clock (one, shift) VALUES (true, '0');

-- Where each workspace lives. A workspace keeps the shard it was first given.
CREATE TABLE {schema}.workspace (
    name       text        COLLATE "C" NOT NULL PRIMARY KEY,
    shard      smallint    NOT NULL,
    created_at timestamptz NOT NULL
);

-- The head of each stream is the judge of an append's expected version.
CREATE TABLE {schema}.stream (
    shard     smallint NOT NULL,
    workspace text     COLLATE "C" NOT NULL,
    name      text     COLLATE "C" NOT NULL CHECK (name <> '' AND left(name, 1) <> '$'),
    head      bigint   NOT NULL CHECK (head >= 0),
    PRIMARY KEY (shard, workspace, name)
) WITH (fillfactor = 80);

-- The users' events. id is the id of the command that wrote them, n counts the
-- events of one command. Their data is kept byte for byte (json, not jsonb):
-- an event is a fact.
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

-- What happened to everything else, on the streams that begin with '$'. The
-- row of the thing itself is the head of its stream.
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

-- The things that lifecycles govern.
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

-- Versioned state. A NULL state is a tombstone: the version goes on, so that
-- what is deleted and made again never has an old version.
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
