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

CREATE TABLE IF NOT EXISTS baseline_wallet (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    version    INTEGER NOT NULL CHECK (version >= 0),
    balance    INTEGER NOT NULL CHECK (balance >= 0),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS baseline_ledger (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    wallet    TEXT    NOT NULL,
    n         INTEGER NOT NULL,
    delta     INTEGER NOT NULL,
    balance   INTEGER NOT NULL,
    reason    TEXT    NOT NULL,
    reference TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, wallet, n),
    UNIQUE (shard, workspace, wallet, reference)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS baseline_batch (
    shard            INTEGER NOT NULL,
    workspace        TEXT    NOT NULL,
    id               TEXT    NOT NULL,
    wallet           TEXT    NOT NULL,
    handler          TEXT    NOT NULL,
    status           TEXT    NOT NULL CHECK (status IN ('PENDING', 'RUNNING', 'PAUSED', 'CANCELLING', 'CANCELLED', 'COMPLETED')),
    parallel         INTEGER NOT NULL CHECK (parallel > 0),
    attempts         INTEGER NOT NULL CHECK (attempts > 0),
    allowed          INTEGER NOT NULL CHECK (allowed > 0),
    timeout          INTEGER NOT NULL CHECK (timeout > 0),
    undo             INTEGER NOT NULL CHECK (undo IN (0, 1)),
    artifacts        INTEGER NOT NULL CHECK (artifacts IN (0, 1)),
    sealed           INTEGER NOT NULL CHECK (sealed IN (0, 1)),
    cancel_requested INTEGER NOT NULL CHECK (cancel_requested IN (0, 1)),
    items            INTEGER NOT NULL CHECK (items >= 0),
    next             INTEGER NOT NULL CHECK (next BETWEEN 0 AND items),
    waiting          INTEGER NOT NULL CHECK (waiting >= 0),
    running          INTEGER NOT NULL CHECK (running >= 0),
    succeeded        INTEGER NOT NULL CHECK (succeeded >= 0),
    accepted         INTEGER NOT NULL CHECK (accepted BETWEEN 0 AND succeeded),
    failed           INTEGER NOT NULL CHECK (failed >= 0),
    cancelled        INTEGER NOT NULL CHECK (cancelled >= 0),
    dirty            INTEGER NOT NULL CHECK (dirty >= 0),
    charged          INTEGER NOT NULL CHECK (charged >= 0),
    refunded         INTEGER NOT NULL CHECK (refunded BETWEEN 0 AND charged),
    need             INTEGER NOT NULL,
    version          INTEGER NOT NULL CHECK (version >= 0),
    error            TEXT,
    due_at           INTEGER,
    served_at        INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, id),
    CHECK (next = waiting + running + succeeded + failed + cancelled)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS baseline_batch_live ON baseline_batch (shard, handler) WHERE status NOT IN ('CANCELLED', 'COMPLETED');
CREATE INDEX IF NOT EXISTS baseline_batch_due ON baseline_batch (shard, due_at) WHERE due_at IS NOT NULL;

-- Without the column in which the engine notes which command took an item.
CREATE TABLE IF NOT EXISTS baseline_item (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    batch      TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    n          INTEGER NOT NULL CHECK (n > 0),
    cost       INTEGER NOT NULL CHECK (cost >= 0),
    charged    INTEGER NOT NULL CHECK (charged IN (0, cost)),
    state      TEXT    NOT NULL CHECK (state IN ('pending', 'waiting', 'running', 'succeeded', 'failed', 'cancelled')),
    decision   TEXT    CHECK (decision IN ('accepted', 'cancelled')),
    input      TEXT    NOT NULL,
    output     TEXT,
    error      TEXT,
    failures   INTEGER NOT NULL CHECK (failures >= 0),
    holder     TEXT,
    epoch      INTEGER NOT NULL CHECK (epoch >= 0),
    until      INTEGER,
    deaths     INTEGER NOT NULL CHECK (deaths >= 0),
    taken_at   INTEGER,
    due_at     INTEGER,
    late       INTEGER,
    sweep_at   INTEGER,
    sweeps     INTEGER NOT NULL CHECK (sweeps >= 0),
    dirty      INTEGER NOT NULL CHECK (dirty IN (0, 1)),
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, batch, key),
    UNIQUE (shard, workspace, batch, n),
    CHECK ((holder IS NULL) = (until IS NULL)),
    CHECK ((holder IS NOT NULL) = (state = 'running')),
    CHECK ((state = 'cancelled') = (decision IS NOT NULL AND decision = 'cancelled'))
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS baseline_item_waiting ON baseline_item (shard, workspace, batch, due_at) WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS baseline_item_held ON baseline_item (shard, workspace, batch, until) WHERE holder IS NOT NULL;
CREATE INDEX IF NOT EXISTS baseline_item_sweep ON baseline_item (shard, sweep_at) WHERE sweep_at IS NOT NULL;

CREATE TABLE IF NOT EXISTS baseline_run (
    shard            INTEGER NOT NULL,
    workspace        TEXT    NOT NULL,
    id               TEXT    NOT NULL,
    definition       TEXT    NOT NULL,
    key              TEXT,
    status           TEXT    NOT NULL CHECK (status IN ('PENDING', 'RUNNING', 'WAITING', 'PAUSED', 'COMPLETED', 'FAILED', 'CANCELLED')),
    version          INTEGER NOT NULL CHECK (version >= 0),
    input            TEXT    NOT NULL,
    state            TEXT    NOT NULL,
    memo             TEXT    NOT NULL,
    output           TEXT,
    error            TEXT,
    step             TEXT    NOT NULL,
    visit            INTEGER NOT NULL CHECK (visit > 0),
    cancel_requested INTEGER NOT NULL CHECK (cancel_requested IN (0, 1)),
    created_at       INTEGER NOT NULL,
    started_at       INTEGER,
    finished_at      INTEGER CHECK ((finished_at IS NOT NULL) = (status IN ('COMPLETED', 'FAILED', 'CANCELLED'))),
    prune_at         INTEGER CHECK (prune_at IS NULL OR finished_at IS NOT NULL),
    updated_at       INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX IF NOT EXISTS baseline_run_key ON baseline_run (shard, workspace, key) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS baseline_run_live ON baseline_run (shard, workspace, status, id) WHERE status NOT IN ('COMPLETED', 'CANCELLED');

CREATE TABLE IF NOT EXISTS baseline_step (
    shard       INTEGER NOT NULL,
    workspace   TEXT    NOT NULL,
    run         TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    visit       INTEGER NOT NULL CHECK (visit > 0),
    n           INTEGER NOT NULL CHECK (n > 0),
    type        TEXT    NOT NULL,
    handler     TEXT    NOT NULL,
    status      TEXT    NOT NULL CHECK (status IN ('PENDING', 'RUNNING', 'WAITING', 'COMPLETED', 'FAILED', 'SKIPPED', 'CANCELLED')),
    input       TEXT    NOT NULL,
    output      TEXT,
    error       TEXT,
    next        TEXT,
    attempts    INTEGER NOT NULL CHECK (attempts >= 0),
    failures    INTEGER NOT NULL CHECK (failures >= 0),
    holder      TEXT,
    epoch       INTEGER NOT NULL CHECK (epoch >= 0),
    until       INTEGER,
    deaths      INTEGER NOT NULL CHECK (deaths >= 0),
    timeout     INTEGER NOT NULL CHECK (timeout > 0), -- in ms
    taken_at    INTEGER,
    due_at      INTEGER,
    later       INTEGER,
    deadline    INTEGER,
    begun       INTEGER NOT NULL CHECK (begun >= 0),
    uncertain   INTEGER NOT NULL CHECK (uncertain IN (0, 1)),
    safety      TEXT    NOT NULL,
    unknown     TEXT    NOT NULL,
    signal      TEXT,
    fired       TEXT,
    created_at  INTEGER NOT NULL,
    started_at  INTEGER,
    finished_at INTEGER CHECK ((finished_at IS NOT NULL) = (status IN ('COMPLETED', 'FAILED', 'SKIPPED', 'CANCELLED'))),
    PRIMARY KEY (shard, workspace, run, name, visit),
    CHECK ((holder IS NULL) = (until IS NULL)),
    CHECK (holder IS NULL OR status = 'RUNNING' AND due_at IS NULL AND uncertain = 0),
    CHECK (uncertain = 0 OR status = 'RUNNING' AND due_at IS NULL),
    CHECK (due_at IS NULL OR status IN ('PENDING', 'RUNNING', 'WAITING'))
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX IF NOT EXISTS baseline_step_n ON baseline_step (shard, workspace, run, n);
CREATE INDEX IF NOT EXISTS baseline_step_due ON baseline_step (shard, handler, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS baseline_step_held ON baseline_step (shard, until) WHERE holder IS NOT NULL;
