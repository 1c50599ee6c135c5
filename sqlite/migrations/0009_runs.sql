-- Runs: workflows that are taken step by step.
-- min_reader: 6

CREATE TABLE holdfast_definition (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, id)
) STRICT, WITHOUT ROWID;

-- Every change of a run adds as many to its version as it writes events. step and visit
-- are where it stands. memo is what expressions may still look at. prune_at is when a run
-- that is over may go.
CREATE TABLE holdfast_run (
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

CREATE UNIQUE INDEX holdfast_run_key ON holdfast_run (shard, workspace, key) WHERE key IS NOT NULL;
CREATE INDEX holdfast_run_live ON holdfast_run (shard, workspace, status, id) WHERE status NOT IN ('COMPLETED', 'CANCELLED');
CREATE INDEX holdfast_run_prune ON holdfast_run (shard, prune_at) WHERE prune_at IS NOT NULL;

-- One visit of a step. The four columns of a hold, as on a task. handler is who does it, ''
-- if the engine itself. due_at is when it is to be looked at, of a step that nobody holds;
-- later is that, of a run that is paused. deadline is how long somebody is waited for.
-- begun counts the effects that may have happened; uncertain waits for a person. next is
-- where the run goes on behind a step that is over. fired is the operation of a transition.
CREATE TABLE holdfast_step (
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

CREATE UNIQUE INDEX holdfast_step_n ON holdfast_step (shard, workspace, run, n);
CREATE INDEX holdfast_step_due ON holdfast_step (shard, handler, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX holdfast_step_held ON holdfast_step (shard, until) WHERE holder IS NOT NULL;
CREATE INDEX holdfast_step_uncertain ON holdfast_step (shard, workspace, run, name, visit) WHERE uncertain = 1;

-- What a run was told, in the order of n. taken says which visit of which step took it.
CREATE TABLE holdfast_signal (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    run       TEXT    NOT NULL,
    id        TEXT    NOT NULL,
    n         INTEGER NOT NULL,
    type      TEXT    NOT NULL,
    payload   TEXT    NOT NULL,
    taken     TEXT,
    at        INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, run, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_signal_inbox ON holdfast_signal (shard, workspace, run, type, n) WHERE taken IS NULL;

-- What somebody is to decide: once.
CREATE TABLE holdfast_approval (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    run        TEXT    NOT NULL,
    step       TEXT    NOT NULL,
    visit      INTEGER NOT NULL,
    prompt     TEXT    NOT NULL,
    requesters TEXT    NOT NULL,
    status     TEXT    NOT NULL CHECK (status IN ('pending', 'approved', 'rejected', 'edited', 'expired')),
    actor      TEXT,
    label      TEXT,
    content    TEXT,
    expires_at INTEGER,
    created_at INTEGER NOT NULL,
    decided_at INTEGER,
    PRIMARY KEY (shard, workspace, run, step, visit),
    CHECK ((status = 'pending') = (decided_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_approval_pending ON holdfast_approval (shard, workspace, run, step, visit) WHERE status = 'pending';
