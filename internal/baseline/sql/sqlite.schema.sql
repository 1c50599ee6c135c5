-- The tables of the engine that this is compared with: the same columns, keys,
-- indexes and checks.
CREATE TABLE IF NOT EXISTS baseline_stream (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    name      TEXT    NOT NULL CHECK (name <> '' AND substr(name, 1, 1) <> '$'),
    head      INTEGER NOT NULL CHECK (head >= 0),
    PRIMARY KEY (shard, workspace, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS baseline_event (
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

CREATE TABLE IF NOT EXISTS baseline_history (
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

CREATE TABLE IF NOT EXISTS baseline_entity (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    lifecycle  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    status     TEXT    NOT NULL CHECK (status <> ''),
    version    INTEGER NOT NULL CHECK (version >= 0),
    data       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    phase      TEXT    NOT NULL DEFAULT 'free' CHECK (phase IN ('free', 'held', 'due', 'uncertain')),
    operation  TEXT    CHECK (phase = 'free' OR operation IS NOT NULL),
    step       TEXT,
    requester  TEXT,
    revert     TEXT    CHECK (phase = 'free' OR revert IS NOT NULL),
    input      TEXT,
    manual     INTEGER NOT NULL DEFAULT 0 CHECK (manual IN (0, 1)),
    side       INTEGER NOT NULL DEFAULT 0 CHECK (side IN (0, 1)),
    holder     TEXT    CHECK ((holder IS NOT NULL) = (phase = 'held')),
    epoch      INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    until      INTEGER CHECK ((holder IS NULL) = (until IS NULL)),
    claimed_at INTEGER,
    due_at     INTEGER CHECK (phase <> 'due' OR due_at IS NOT NULL),
    begun      INTEGER NOT NULL DEFAULT 0 CHECK (begun >= 0),
    failures   INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    deaths     INTEGER NOT NULL DEFAULT 0 CHECK (deaths >= 0),
    error      TEXT,
    outcome    TEXT,
    queue      TEXT,
    stage      TEXT,
    PRIMARY KEY (shard, workspace, lifecycle, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS baseline_entity_held ON baseline_entity (shard, until) WHERE holder IS NOT NULL;
CREATE INDEX IF NOT EXISTS baseline_entity_due ON baseline_entity (shard, coalesce(queue, 'l:' || lifecycle), due_at) WHERE phase = 'due';
CREATE UNIQUE INDEX IF NOT EXISTS baseline_entity_open ON baseline_entity (shard, workspace, operation) WHERE phase <> 'free';

CREATE TABLE IF NOT EXISTS baseline_scope (
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

CREATE TABLE IF NOT EXISTS baseline_task (
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

CREATE INDEX IF NOT EXISTS baseline_task_due ON baseline_task (shard, queue, due_at) WHERE state = 'due' AND holder IS NULL;
CREATE INDEX IF NOT EXISTS baseline_task_held ON baseline_task (shard, until) WHERE holder IS NOT NULL;

-- The engine has no wallet to compare with yet.
CREATE TABLE IF NOT EXISTS baseline_wallet (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    version    INTEGER NOT NULL CHECK (version >= 0),
    balance    INTEGER NOT NULL CHECK (balance >= 0),
    reserved   INTEGER NOT NULL CHECK (reserved >= 0),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, id)
) STRICT, WITHOUT ROWID;
