-- The whole schema. Tables stand by capability, each with its indexes. The table holdfast_migration is made by the
-- program, which records in it what it applied.
-- min_reader: 1
--
-- What is the same everywhere:
--
-- Keys. shard leads every key and workspace follows.
--
-- Types. Times are in milliseconds since 1970, data is JSON as text, and a boolean is 0 or 1.
--
-- Leases. A row that is worked on has a lease: its holder, its epoch, which only grows, and until when it lasts. deaths
-- counts the holders that crashed. quiet says that the lease was handed out to a worker elsewhere that has not been heard
-- of yet; lost counts such hand-outs in a row. They are repeated after a pause, and count as no failure.
--
-- Versions. The version of a row is that of the last event on its stream in history.
--
-- Checks. They say what every row must be, for PostgreSQL too, whose busiest tables have none (decision 012).
--
-- Indexes. Most are partial: a row that is finished costs nothing.

------------------------------------------------------------------------------------------------------------------------
-- The database

-- One row: how far tests have moved the database's time, in milliseconds. meets is for a clock of the machine that was set
-- back: the machine's time at which the database's time, which is ahead and runs at half speed, meets it (decision 026).
CREATE TABLE holdfast_clock (
    one   INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    shift INTEGER NOT NULL,
    meets INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO holdfast_clock (one, shift) VALUES (1, 0);

-- One row: the key that ids of tasks are signed with, so that an id that was handed out is told from one made up.
CREATE TABLE holdfast_secret (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    value BLOB    NOT NULL
);
INSERT INTO holdfast_secret (one, value) VALUES (1, randomblob(32));

-- The shard of each workspace. A workspace keeps the shard that it was first given.
CREATE TABLE holdfast_workspace (
    name       TEXT    NOT NULL PRIMARY KEY,
    shard      INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The history of everything but the users' streams, on streams that begin with '$'. The row of the thing itself is the
-- head of its stream.
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

------------------------------------------------------------------------------------------------------------------------
-- Streams

-- The head of each of the users' streams, which decides an append's expected version. Versions below first are gone; the
-- rows below pruned are deleted, those from there to first wait for a sweep. A stream that is being closed is leased; a
-- closed one takes no more events.
CREATE TABLE holdfast_stream (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    name      TEXT    NOT NULL CHECK (name <> '' AND substr(name, 1, 1) <> '$'),
    head      INTEGER NOT NULL CHECK (head >= 0),
    first     INTEGER NOT NULL DEFAULT 0 CHECK (first >= 0),
    state     TEXT    NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closing', 'closed')),
    holder    TEXT,
    epoch     INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    until     INTEGER,
    closed    TEXT    CHECK (closed IN ('archive', 'tombstone')) CHECK ((closed IS NOT NULL) = (state = 'closed')),
    pruned    INTEGER NOT NULL DEFAULT 0 CHECK (pruned >= 0),
    PRIMARY KEY (shard, workspace, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_stream_held ON holdfast_stream (shard, until) WHERE holder IS NOT NULL;
CREATE INDEX holdfast_stream_unpruned ON holdfast_stream (shard, workspace, name) WHERE pruned < first;

-- The users' events. id is the id of the command that wrote them, n counts the events of one command. The data is kept
-- byte for byte: an event is a fact. subject is whose key the data is encrypted with, if it is.
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
    subject     TEXT,
    PRIMARY KEY (shard, id, n),
    UNIQUE (shard, workspace, stream, version)
) STRICT, WITHOUT ROWID;

-- The feed over all streams of a workspace: each event has a position, given after its commit. last is the newest.
CREATE TABLE holdfast_sequence (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    last      INTEGER NOT NULL CHECK (last >= 0),
    PRIMARY KEY (shard, workspace)
) STRICT, WITHOUT ROWID;
CREATE TABLE holdfast_feed (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    position  INTEGER NOT NULL CHECK (position > 0),
    stream    TEXT    NOT NULL,
    version   INTEGER NOT NULL CHECK (version >= 0),
    PRIMARY KEY (shard, workspace, position),
    UNIQUE (shard, workspace, stream, version)
) STRICT, WITHOUT ROWID;

-- An aggregate at a version of its stream, so that it need not be folded from the beginning. It can be made again from
-- the events.
CREATE TABLE holdfast_snapshot (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    stream    TEXT    NOT NULL,
    kind      TEXT    NOT NULL,
    version   INTEGER NOT NULL CHECK (version >= 0),
    data      TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, stream, kind)
) STRICT, WITHOUT ROWID;

-- The key of a subject, wrapped; NULL once the subject is forgotten.
CREATE TABLE holdfast_subject (
    shard        INTEGER NOT NULL,
    workspace    TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    key          BLOB,
    created_at   INTEGER NOT NULL,
    forgotten_at INTEGER,
    PRIMARY KEY (shard, workspace, name),
    CHECK ((key IS NULL) = (forgotten_at IS NOT NULL))
) STRICT, WITHOUT ROWID;

------------------------------------------------------------------------------------------------------------------------
-- Reactions

-- The revision of a workspace's reactions. A command that writes events carries the revision that its node knows, and is
-- refused where it has changed.
CREATE TABLE holdfast_registry (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    revision  INTEGER NOT NULL CHECK (revision > 0),
    PRIMARY KEY (shard, workspace)
) STRICT, WITHOUT ROWID;

-- The streams and events that each reaction follows. base is where the epochs of its leases begin: a reaction made again
-- under the same name never meets a holder of the old one. A removed one stays until all that it left
-- is deleted. There are no due notices, which PostgreSQL has: a command writes into follow.
CREATE TABLE holdfast_reaction (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    source     TEXT    NOT NULL CHECK (source IN ('event', 'history')),
    events     TEXT    NOT NULL,
    streams    TEXT    NOT NULL,
    options    TEXT    NOT NULL,
    max_deaths INTEGER NOT NULL CHECK (max_deaths > 0),
    priority   INTEGER NOT NULL,
    base       INTEGER NOT NULL CHECK (base >= 0),
    state      TEXT    NOT NULL CHECK (state IN ('waiting', 'live', 'removed')),
    waits      TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_reaction_unfinished ON holdfast_reaction (shard, workspace, name) WHERE state <> 'live';

-- The position of a reaction on a stream, with its lease. watermark is the last version handled, due the last one known
-- to concern the reaction. rank is the time at which it is due less what its priority is worth. failing is the version
-- that failed last. generation counts the resets; reset_requested resets the stream when the lease ends. delivered is the
-- last version delivered under the lease of delivered_epoch; for a lease of another epoch it is not known. crash_group is
-- how many streams with one, this one included, a holder may have at once after a crash: as many as the crashed holder
-- had, and half after each further crash; 0 where nobody crashed.
CREATE TABLE holdfast_follow (
    shard           INTEGER NOT NULL,
    workspace       TEXT    NOT NULL,
    reaction        TEXT    NOT NULL,
    stream          TEXT    NOT NULL,
    watermark       INTEGER NOT NULL CHECK (watermark >= -1),
    due             INTEGER NOT NULL CHECK (due >= -1),
    due_at          INTEGER NOT NULL,
    rank            INTEGER NOT NULL,
    failing         INTEGER,
    failures        INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    blocked         INTEGER NOT NULL DEFAULT 0 CHECK (blocked IN (0, 1)),
    error           TEXT,
    holder          TEXT,
    epoch           INTEGER NOT NULL CHECK (epoch >= 0),
    until           INTEGER,
    deaths          INTEGER NOT NULL DEFAULT 0 CHECK (deaths >= 0),
    generation      INTEGER NOT NULL DEFAULT 0 CHECK (generation >= 0),
    version         INTEGER NOT NULL DEFAULT -1 CHECK (version >= -1),
    updated_at      INTEGER NOT NULL,
    delivered       INTEGER NOT NULL DEFAULT -1 CHECK (delivered >= -1),
    delivered_epoch INTEGER NOT NULL DEFAULT 0 CHECK (delivered_epoch >= 0),
    crash_group     INTEGER NOT NULL DEFAULT 0 CHECK (crash_group >= 0),
    reset_requested INTEGER NOT NULL DEFAULT 0 CHECK (reset_requested IN (0, 1)),
    quiet           INTEGER NOT NULL DEFAULT 0 CHECK (quiet IN (0, 1)),
    lost            INTEGER NOT NULL DEFAULT 0 CHECK (lost >= 0),
    PRIMARY KEY (shard, workspace, reaction, stream),
    CHECK ((holder IS NULL) = (until IS NULL)),
    CHECK (holder IS NULL OR blocked = 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_follow_held ON holdfast_follow (shard, until) WHERE holder IS NOT NULL;
CREATE INDEX holdfast_follow_blocked ON holdfast_follow (shard, workspace, reaction, stream) WHERE blocked = 1;
CREATE INDEX holdfast_follow_suspect ON holdfast_follow (shard, holder) WHERE holder IS NOT NULL AND crash_group > 0;
CREATE INDEX holdfast_follow_lost ON holdfast_follow (shard, workspace) WHERE lost > 0;
-- Work is found for each workspace by itself, so that workspaces are served in turn. Within a reaction, streams come in
-- the order of due_at, which leaves out those that wait for a retry; rank only orders reactions.
CREATE INDEX holdfast_follow_ready ON holdfast_follow (shard, reaction, workspace, crash_group, due_at)
    WHERE holder IS NULL AND blocked = 0 AND due > watermark;

------------------------------------------------------------------------------------------------------------------------
-- Lifecycles

-- The config of a lifecycle that is in force. While a change is examined, wanted is the new one, and both are obeyed.
-- claims are the statuses that only a claim leads into, while a change is examined those of both configs. origin says
-- whether a program brought the config, with its handlers, or the HTTP API (door).
CREATE TABLE holdfast_lifecycle (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    revision   INTEGER NOT NULL CHECK (revision > 0),
    statuses   TEXT    NOT NULL,
    config     TEXT    NOT NULL,
    wanted     TEXT,
    updated_at INTEGER NOT NULL,
    origin     TEXT    NOT NULL DEFAULT 'program' CHECK (origin IN ('program', 'door')),
    claims     TEXT,
    PRIMARY KEY (shard, workspace, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_lifecycle_door ON holdfast_lifecycle (shard, updated_at) WHERE origin = 'door';

-- The things that lifecycles govern, each with the operation that is under way on it.
-- phase: free; held, under a lease; due, to be resumed by a node or worker that has the handler; uncertain, until a person
-- says what happened. The columns of an operation stay until the next, so that who ends it again gets the same answer.
-- plan is the step as the config had it when the operation was claimed; a plan of another operation does not count. begun
-- counts the effects that may have happened. manual is a claim that nobody resumes. queue is who takes a due operation:
-- the workers of a handler, or, where it is NULL, a node that has the lifecycle; stage is which of its handlers is next.
-- side marks a row beside one in a table of the user's own, with the status that was last seen there.
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
    plan       TEXT,
    quiet      INTEGER NOT NULL DEFAULT 0 CHECK (quiet IN (0, 1)),
    lost       INTEGER NOT NULL DEFAULT 0 CHECK (lost >= 0),
    PRIMARY KEY (shard, workspace, lifecycle, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_entity_held ON holdfast_entity (shard, until) WHERE holder IS NOT NULL;
CREATE UNIQUE INDEX holdfast_entity_open ON holdfast_entity (shard, workspace, operation) WHERE phase <> 'free';
CREATE INDEX holdfast_entity_due ON holdfast_entity (shard, coalesce(queue, 'l:' || lifecycle), due_at) WHERE phase = 'due';
CREATE INDEX holdfast_entity_lost ON holdfast_entity (shard, workspace) WHERE lost > 0;
-- As entity_due, for each workspace by itself, so that workspaces are served in turn.
CREATE INDEX holdfast_entity_turn ON holdfast_entity (shard, coalesce(queue, 'l:' || lifecycle), workspace, due_at) WHERE phase = 'due';

-- The effects of an operation or a step. ordinal counts those of one name. epoch is that of the attempt that began it last.
CREATE TABLE holdfast_effect (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    operation TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    ordinal   INTEGER NOT NULL CHECK (ordinal >= 0),
    epoch     INTEGER NOT NULL,
    state     TEXT    NOT NULL CHECK (state IN ('begun', 'done', 'notDone')),
    policy    TEXT    NOT NULL CHECK (policy IN ('retry', 'probe', 'hold')),
    result    TEXT,
    begun_at  INTEGER NOT NULL,
    ended_at  INTEGER,
    PRIMARY KEY (shard, workspace, operation, name, ordinal),
    CHECK ((state = 'begun') = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;

-- Calls of effects by holders that had lost their lease. A row is written once and changes no operation; seen_at is when a
-- person acknowledged it.
CREATE TABLE holdfast_late_call (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    operation TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    ordinal   INTEGER NOT NULL CHECK (ordinal >= 0),
    epoch     INTEGER NOT NULL,
    state     TEXT    NOT NULL CHECK (state IN ('done', 'unknown')),
    id        TEXT    NOT NULL,
    subject   TEXT    NOT NULL,
    result    TEXT    NOT NULL,
    node      TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    seen_at   INTEGER,
    seen_by   TEXT,
    PRIMARY KEY (shard, workspace, operation, name, ordinal, epoch, state)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_late_call_unseen ON holdfast_late_call (shard, workspace, operation) WHERE seen_at IS NULL;

-- Steps that were refused, with their requesters: a best-effort log.
CREATE TABLE holdfast_attempt (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    lifecycle TEXT    NOT NULL,
    entity    TEXT    NOT NULL,
    id        TEXT    NOT NULL,
    step      TEXT    NOT NULL,
    requester TEXT    NOT NULL,
    code      TEXT    NOT NULL,
    detail    TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, lifecycle, entity, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_attempt_at ON holdfast_attempt (shard, at);

------------------------------------------------------------------------------------------------------------------------
-- Runs

-- Workflow definitions. They never change.
CREATE TABLE holdfast_definition (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, id)
) STRICT, WITHOUT ROWID;

-- Executions of definitions. A change adds as many to the version as it writes events. step and visit are where the run
-- is. memo is what expressions may still look at. prune_at is when a finished run may be deleted.
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

-- The visits of a run's steps, numbered by n, with their leases. handler is who does the step, '' for the engine itself.
-- due_at is when a step without a holder is due; later is the same while the run is paused. deadline is how long an event
-- or a decision is waited for. begun counts the effects that may have happened; uncertain waits for a person. next is
-- where the run goes on behind a finished step. fired is the operation of a transition.
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
    quiet       INTEGER NOT NULL DEFAULT 0 CHECK (quiet IN (0, 1)),
    lost        INTEGER NOT NULL DEFAULT 0 CHECK (lost >= 0),
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
CREATE INDEX holdfast_step_lost ON holdfast_step (shard, workspace) WHERE lost > 0;
-- As step_due, for each workspace by itself, so that workspaces are served in turn.
CREATE INDEX holdfast_step_turn ON holdfast_step (shard, handler, workspace, due_at) WHERE due_at IS NOT NULL;

-- Signals that were sent to a run, in the order of n. taken is the step and visit that received one.
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

-- Decisions that a run waits for. Each is made once.
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

------------------------------------------------------------------------------------------------------------------------
-- Batches

-- balance is the sum of the wallet's ledger, and version the number of its last row. negative says that the balance may be
-- below zero.
CREATE TABLE holdfast_wallet (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    balance    INTEGER NOT NULL,
    negative   INTEGER NOT NULL CHECK (negative IN (0, 1)),
    version    INTEGER NOT NULL CHECK (version >= 0),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, id)
) STRICT, WITHOUT ROWID;

-- Rows are only inserted. n counts them, from 1; balance is the wallet's after the row. A reference names what a row is
-- for, and stands once.
CREATE TABLE holdfast_ledger (
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

-- Items of work that are paid for, one by one, from a wallet. They are numbered from 1 and first taken in that order:
-- those behind next were never taken, cost nothing yet, and are decided by the end of the batch. The counts are of the
-- others: waiting were taken before and are due again; running are leased; succeeded, of which some are accepted; failed
-- were given up, and what they cost was returned; cancelled. dirty counts those failed or cancelled that are not cleaned
-- up yet. charged and refunded are what went from the wallet and back to it, in all. need is what the next item costs, of
-- a batch that is PAUSED for lack of it. due_at is when the batch is to be visited: it is cancelled, or may be complete.
CREATE TABLE holdfast_batch (
    shard            INTEGER NOT NULL,
    workspace        TEXT    NOT NULL,
    id               TEXT    NOT NULL,
    wallet           TEXT    NOT NULL,
    handler          TEXT    NOT NULL,
    status           TEXT    NOT NULL CHECK (status IN ('PENDING', 'RUNNING', 'PAUSED', 'CANCELLING', 'CANCELLED', 'COMPLETED')),
    parallel         INTEGER NOT NULL CHECK (parallel > 0),
    attempts         INTEGER NOT NULL CHECK (attempts > 0),
    allowed          INTEGER NOT NULL CHECK (allowed > 0), -- deaths
    timeout          INTEGER NOT NULL CHECK (timeout > 0), -- in ms
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
CREATE INDEX holdfast_batch_live ON holdfast_batch (shard, handler) WHERE status NOT IN ('CANCELLED', 'COMPLETED');
CREATE INDEX holdfast_batch_due ON holdfast_batch (shard, due_at) WHERE due_at IS NOT NULL;

-- The items, with their leases. charged is what was taken for the item, once. late is until when a holder may be at work
-- whose lease was ended from outside. sweep_at is when what a failed or cancelled item left is to be cleaned up; who does
-- so holds the item until then, and sweeps is the epoch of that.
CREATE TABLE holdfast_item (
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
    taking     BLOB, -- the command that took it
    due_at     INTEGER,
    late       INTEGER,
    sweep_at   INTEGER,
    sweeps     INTEGER NOT NULL CHECK (sweeps >= 0),
    dirty      INTEGER NOT NULL CHECK (dirty IN (0, 1)),
    updated_at INTEGER NOT NULL,
    quiet      INTEGER NOT NULL DEFAULT 0 CHECK (quiet IN (0, 1)),
    lost       INTEGER NOT NULL DEFAULT 0 CHECK (lost >= 0),
    PRIMARY KEY (shard, workspace, batch, key),
    UNIQUE (shard, workspace, batch, n),
    CHECK ((holder IS NULL) = (until IS NULL)),
    CHECK ((holder IS NOT NULL) = (state = 'running')),
    CHECK ((state = 'cancelled') = (decision IS NOT NULL AND decision = 'cancelled'))
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_item_waiting ON holdfast_item (shard, workspace, batch, due_at) WHERE state = 'waiting';
CREATE INDEX holdfast_item_held ON holdfast_item (shard, workspace, batch, until) WHERE holder IS NOT NULL;
CREATE INDEX holdfast_item_sweep ON holdfast_item (shard, sweep_at) WHERE sweep_at IS NOT NULL;
CREATE INDEX holdfast_item_lost ON holdfast_item (shard, workspace) WHERE lost > 0;
-- As item_sweep, for each workspace by itself, so that workspaces are served in turn.
CREATE INDEX holdfast_item_turn ON holdfast_item (shard, workspace, sweep_at) WHERE sweep_at IS NOT NULL;

------------------------------------------------------------------------------------------------------------------------
-- Scopes

-- Versioned state. A NULL state is a tombstone: the version goes on, so that a scope that is deleted and made again never
-- has an old version. expires_at is when a scope ends, or when a tombstone is deleted. born is the version that the row
-- began with.
CREATE TABLE holdfast_scope (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    version    INTEGER NOT NULL CHECK (version >= 0),
    state      TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    born       INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (shard, workspace, kind, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_scope_expires ON holdfast_scope (shard, expires_at) WHERE expires_at IS NOT NULL;

-- The version that the next new scope of a kind begins with: above every version that a deleted tombstone had.
CREATE TABLE holdfast_scope_floor (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    kind      TEXT    NOT NULL,
    version   INTEGER NOT NULL CHECK (version >= 0),
    PRIMARY KEY (shard, workspace, kind)
) STRICT, WITHOUT ROWID;

------------------------------------------------------------------------------------------------------------------------
-- The HTTP API

-- API keys. Only the SHA-256 of the secret is stored. A key belongs to a workspace, but is looked up before that is
-- known. successor is the key that it was rotated to, origin the first of the keys that it comes from by rotations; NULL
-- for a new one. handlers are those whose tasks the key may do; an empty list means all.
CREATE TABLE holdfast_api_key (
    id         TEXT    NOT NULL PRIMARY KEY,
    workspace  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    role       TEXT    NOT NULL CHECK (role IN ('read', 'operate', 'worker', 'admin')),
    requesters TEXT    NOT NULL,
    hash       TEXT    NOT NULL,
    rate       INTEGER NOT NULL CHECK (rate >= 0),
    version    INTEGER NOT NULL CHECK (version >= 0),
    successor  TEXT,
    created_by TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    handlers   TEXT    NOT NULL DEFAULT '[]',
    origin     TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_api_key_workspace ON holdfast_api_key (workspace, id);

-- Requests with an idempotency key. state: held, while a holder works on it; done, with its answer; operation, where the
-- answer is the outcome of that.
CREATE TABLE holdfast_request (
    shard       INTEGER NOT NULL,
    workspace   TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    holder      TEXT,
    epoch       INTEGER NOT NULL,
    until       INTEGER,
    operation   TEXT,
    subject     TEXT,
    status      INTEGER,
    answer      TEXT,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_request_expires ON holdfast_request (shard, expires_at);

-- The tokens of claims that were taken over HTTP. Only the SHA-256 is stored.
CREATE TABLE holdfast_token (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    hash       TEXT    NOT NULL,
    lifecycle  TEXT    NOT NULL,
    entity     TEXT    NOT NULL,
    operation  TEXT    NOT NULL,
    epoch      INTEGER NOT NULL,
    requester  TEXT    NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_token_expires ON holdfast_token (shard, expires_at);

-- Handlers that are no functions of a program: workers elsewhere, and URLs that are called. The secret that calls are
-- signed with is encrypted.
CREATE TABLE holdfast_handler (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    kind       TEXT    NOT NULL CHECK (kind IN ('http', 'worker')),
    url        TEXT    NOT NULL,
    safety     TEXT    NOT NULL,
    unknown    TEXT    NOT NULL,
    timeout    INTEGER NOT NULL CHECK (timeout >= 0),
    secret     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, name)
) STRICT, WITHOUT ROWID;

-- Webhooks: URLs that events are sent to, each by the reaction $hook:<id>. The secrets that messages are signed with are
-- encrypted: the present one, and the former while messages are signed with both. A removed webhook stays without its
-- secrets, for its history.
CREATE TABLE holdfast_webhook (
    shard        INTEGER NOT NULL,
    workspace    TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    url          TEXT    NOT NULL,
    events       TEXT    NOT NULL,
    streams      TEXT    NOT NULL,
    secret       TEXT    NOT NULL,
    former       TEXT,
    former_until INTEGER,
    version      INTEGER NOT NULL CHECK (version >= 0),
    created_by   TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    rotated_at   INTEGER,
    removed_at   INTEGER,
    PRIMARY KEY (shard, workspace, id)
) STRICT, WITHOUT ROWID;
