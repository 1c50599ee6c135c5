-- The ground: time, workspaces, streams with their events, the history of
-- everything else, entities and scopes.
-- min_reader: 1

-- One row: how far tests have moved the database's time, in milliseconds.
CREATE TABLE holdfast_clock (
    one   INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    shift INTEGER NOT NULL
) STRICT;
INSERT INTO holdfast_clock (one, shift) VALUES (1, 0);

-- Where each workspace lives. A workspace keeps the shard it was first given.
CREATE TABLE holdfast_workspace (
    name       TEXT    NOT NULL PRIMARY KEY,
    shard      INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The head of each stream is the judge of an append's expected version.
CREATE TABLE holdfast_stream (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    name      TEXT    NOT NULL CHECK (name <> '' AND substr(name, 1, 1) <> '$'),
    head      INTEGER NOT NULL CHECK (head >= 0),
    PRIMARY KEY (shard, workspace, name)
) STRICT, WITHOUT ROWID;

-- The users' events. id is the id of the command that wrote them, n counts the
-- events of one command.
CREATE TABLE holdfast_event (
    shard       INTEGER NOT NULL,
    id          BLOB    NOT NULL CHECK (length(id) = 16),
    n           INTEGER NOT NULL,
    workspace   TEXT    NOT NULL,
    stream      TEXT    NOT NULL,
    version     INTEGER NOT NULL CHECK (version >= 0),
    name        TEXT    NOT NULL,
    data        TEXT    NOT NULL,
    correlation TEXT,
    causation   TEXT,
    actor       TEXT,
    at          INTEGER NOT NULL,
    PRIMARY KEY (shard, id, n),
    UNIQUE (shard, workspace, stream, version)
) STRICT, WITHOUT ROWID;

-- What happened to everything else, on the streams that begin with '$'. The
-- row of the thing itself is the head of its stream.
CREATE TABLE holdfast_history (
    shard       INTEGER NOT NULL,
    id          BLOB    NOT NULL CHECK (length(id) = 16),
    n           INTEGER NOT NULL,
    workspace   TEXT    NOT NULL,
    stream      TEXT    NOT NULL CHECK (substr(stream, 1, 1) = '$'),
    version     INTEGER NOT NULL CHECK (version >= 0),
    name        TEXT    NOT NULL,
    data        TEXT    NOT NULL,
    correlation TEXT,
    causation   TEXT,
    actor       TEXT,
    at          INTEGER NOT NULL,
    PRIMARY KEY (shard, id, n),
    UNIQUE (shard, workspace, stream, version)
) STRICT, WITHOUT ROWID;

-- The things that lifecycles govern.
CREATE TABLE holdfast_entity (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    lifecycle  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    status     TEXT    NOT NULL CHECK (status <> ''),
    version    INTEGER NOT NULL CHECK (version >= 0),
    data       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, lifecycle, id)
) STRICT, WITHOUT ROWID;

-- Versioned state. A NULL state is a tombstone: the version goes on, so that
-- what is deleted and made again never has an old version.
CREATE TABLE holdfast_scope (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    version    INTEGER NOT NULL CHECK (version >= 0),
    state      TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, kind, id)
) STRICT, WITHOUT ROWID;
