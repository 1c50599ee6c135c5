-- The whole schema. Tables stand by capability, each with its indexes; the functions stand at the end. The table
-- migration is made by the program, which records in it what it applied.
-- min_reader: 1
--
-- What is the same everywhere:
--
-- Keys. shard leads every key and workspace follows. Text in keys compares as bytes (COLLATE "C"): that is faster, and
-- the order that SQLite has.
--
-- Leases. A row that is worked on has a lease: its holder, its epoch, which only grows, and until when it lasts. deaths
-- counts the holders that crashed. quiet says that the lease was handed out to a worker elsewhere that has not been heard
-- of yet; lost counts such hand-outs in a row. They are repeated after a pause, and count as no failure.
--
-- Versions. The version of a row is that of the last event on its stream in history.
--
-- Checks. PostgreSQL compiles the CHECKs of a table for each statement that writes to it, so the tables that every
-- command writes to have none. The same tables have them on SQLite, where they cost nothing (decision 012).
--
-- Indexes. Most are partial: a row that is finished costs nothing. One that begins with (shard + 0) is used by the
-- statements that ask for just that expression, and by no other: while the planner knows little of a table, it would
-- take any index that begins with shard, and read all of the shard (decision 030).

------------------------------------------------------------------------------------------------------------------------
-- The database

-- One row: how far tests have moved the database's time. They can only where movable is set; elsewhere the time is the
-- server's.
CREATE TABLE {schema}.clock (
    one     boolean  NOT NULL PRIMARY KEY CHECK (one),
    shift   interval NOT NULL,
    movable boolean  NOT NULL DEFAULT false
);
INSERT INTO {schema}.clock (one, shift) VALUES (true, '0');

-- One row: the key that ids of tasks are signed with, so that an id that was handed out is told from one made up.
CREATE TABLE {schema}.secret (
    one   smallint PRIMARY KEY CHECK (one = 1),
    value bytea    NOT NULL
);
INSERT INTO {schema}.secret (one, value)
SELECT 1, pg_catalog.uuid_send(pg_catalog.gen_random_uuid()) || pg_catalog.uuid_send(pg_catalog.gen_random_uuid());

-- The shard of each workspace. A workspace keeps the shard that it was first given.
CREATE TABLE {schema}.workspace (
    name       text        COLLATE "C" NOT NULL PRIMARY KEY,
    shard      smallint    NOT NULL,
    created_at timestamptz NOT NULL
);

-- The history of everything but the users' streams, on streams that begin with '$'. The row of the thing itself is the
-- head of its stream.
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

------------------------------------------------------------------------------------------------------------------------
-- Streams

-- The head of each of the users' streams, which decides an append's expected version. Versions below first are gone; the
-- rows below pruned are deleted, those from there to first wait for a sweep. A stream that is being closed is leased; a
-- closed one takes no more events.
CREATE TABLE {schema}.stream (
    shard     smallint NOT NULL,
    workspace text     COLLATE "C" NOT NULL,
    name      text     COLLATE "C" NOT NULL,
    head      bigint   NOT NULL,
    first     bigint   NOT NULL DEFAULT 0,
    state     text     COLLATE "C" NOT NULL DEFAULT 'open', -- open, closing, closed
    holder    text,
    epoch     bigint   NOT NULL DEFAULT 0,
    until     timestamptz,
    closed    text     COLLATE "C", -- how: archive, tombstone
    pruned    bigint   NOT NULL DEFAULT 0,
    PRIMARY KEY (shard, workspace, name)
) WITH (fillfactor = 80);
CREATE INDEX stream_held ON {schema}.stream (shard, until) WHERE holder IS NOT NULL;
CREATE INDEX stream_unpruned ON {schema}.stream (shard, workspace, name) WHERE pruned < first;

-- The users' events. id is the id of the command that wrote them, n counts the events of one command. The data is kept
-- byte for byte (json, not jsonb): an event is a fact. subject is whose key the data is encrypted with, if it is.
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
    subject     text        COLLATE "C",
    PRIMARY KEY (shard, id, n),
    UNIQUE (shard, workspace, stream, version)
);

-- The feed over all streams of a workspace: each event has a position, given after its commit. last is the newest.
CREATE TABLE {schema}.sequence (
    shard     smallint NOT NULL,
    workspace text     COLLATE "C" NOT NULL,
    last      bigint   NOT NULL,
    PRIMARY KEY (shard, workspace)
);
CREATE TABLE {schema}.feed (
    shard     smallint NOT NULL,
    workspace text     COLLATE "C" NOT NULL,
    position  bigint   NOT NULL,
    stream    text     COLLATE "C" NOT NULL,
    version   bigint   NOT NULL,
    PRIMARY KEY (shard, workspace, position),
    UNIQUE (shard, workspace, stream, version)
);

-- An aggregate at a version of its stream, so that it need not be folded from the beginning. It can be made again from
-- the events.
CREATE TABLE {schema}.snapshot (
    shard     smallint    NOT NULL,
    workspace text        COLLATE "C" NOT NULL,
    stream    text        COLLATE "C" NOT NULL,
    kind      text        COLLATE "C" NOT NULL,
    version   bigint      NOT NULL CHECK (version >= 0),
    data      json        NOT NULL,
    at        timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, stream, kind)
);

-- The key of a subject, wrapped; NULL once the subject is forgotten.
CREATE TABLE {schema}.subject (
    shard        smallint    NOT NULL,
    workspace    text        COLLATE "C" NOT NULL,
    name         text        COLLATE "C" NOT NULL,
    key          bytea,
    created_at   timestamptz NOT NULL,
    forgotten_at timestamptz,
    PRIMARY KEY (shard, workspace, name),
    CHECK ((key IS NULL) = (forgotten_at IS NOT NULL))
);

------------------------------------------------------------------------------------------------------------------------
-- Reactions

-- The revision of a workspace's reactions. A command that writes events carries the revision that its node knows, and is
-- refused where it has changed.
CREATE TABLE {schema}.registry (
    shard     smallint NOT NULL,
    workspace text     COLLATE "C" NOT NULL,
    revision  bigint   NOT NULL CHECK (revision > 0),
    PRIMARY KEY (shard, workspace)
);

-- The streams and events that each reaction follows. base is where the epochs of its leases begin: a reaction made again
-- under the same name never meets a holder of the old one. A new reaction waits for the transactions that were under way
-- when it was made, since they may write without knowing it. A removed one stays until all that it left is deleted.
CREATE TABLE {schema}.reaction (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    name       text        COLLATE "C" NOT NULL,
    source     text        COLLATE "C" NOT NULL CHECK (source IN ('event', 'history')),
    events     jsonb       NOT NULL,
    streams    text        COLLATE "C" NOT NULL,
    options    jsonb       NOT NULL,
    max_deaths integer     NOT NULL CHECK (max_deaths > 0),
    priority   integer     NOT NULL,
    base       bigint      NOT NULL CHECK (base >= 0),
    state      text        COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'live', 'removed')),
    waits      jsonb,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, name)
);
CREATE INDEX reaction_unfinished ON {schema}.reaction (shard, workspace, name) WHERE state <> 'live';

-- Due notices, written with the events: a reaction has work on a stream up to a version. They are only inserted and
-- deleted, so that an append waits for no holder of the stream.
CREATE TABLE {schema}.due (
    shard     smallint NOT NULL,
    reaction  text     COLLATE "C" NOT NULL,
    workspace text     COLLATE "C" NOT NULL,
    stream    text     COLLATE "C" NOT NULL,
    version   bigint   NOT NULL,
    PRIMARY KEY (shard, reaction, workspace, stream, version)
);

-- The position of a reaction on a stream, with its lease. watermark is the last version handled, due the last one known
-- to concern the reaction. rank is the time at which it is due less what its priority is worth. failing is the version
-- that failed last. generation counts the resets; reset_requested resets the stream when the lease ends. delivered is the
-- last version delivered under the lease of delivered_epoch; for a lease of another epoch it is not known. crash_group is
-- how many streams with one, this one included, a holder may have at once after a crash: as many as the crashed holder
-- had, and half after each further crash; 0 where nobody crashed.
CREATE TABLE {schema}.follow (
    shard           smallint    NOT NULL,
    workspace       text        COLLATE "C" NOT NULL,
    reaction        text        COLLATE "C" NOT NULL,
    stream          text        COLLATE "C" NOT NULL,
    watermark       bigint      NOT NULL,
    due             bigint      NOT NULL,
    due_at          timestamptz NOT NULL,
    rank            timestamptz NOT NULL,
    failing         bigint,
    failures        integer     NOT NULL DEFAULT 0,
    blocked         boolean     NOT NULL DEFAULT false,
    error           text,
    holder          text,
    epoch           bigint      NOT NULL,
    until           timestamptz,
    deaths          integer     NOT NULL DEFAULT 0,
    generation      bigint      NOT NULL DEFAULT 0,
    version         bigint      NOT NULL DEFAULT -1,
    updated_at      timestamptz NOT NULL,
    delivered       bigint      NOT NULL DEFAULT -1,
    delivered_epoch bigint      NOT NULL DEFAULT 0,
    crash_group     integer     NOT NULL DEFAULT 0,
    reset_requested boolean     NOT NULL DEFAULT false,
    quiet           boolean     NOT NULL DEFAULT false,
    lost            bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (shard, workspace, reaction, stream)
) WITH (fillfactor = 70);
CREATE INDEX follow_blocked ON {schema}.follow (shard, workspace, reaction, stream) WHERE blocked;
CREATE INDEX follow_suspect ON {schema}.follow (shard, holder) WHERE holder IS NOT NULL AND crash_group > 0;
CREATE INDEX follow_held ON {schema}.follow ((shard + 0), until) WHERE holder IS NOT NULL;
CREATE INDEX follow_lost ON {schema}.follow ((shard + 0), workspace) WHERE lost > 0;
-- Work is found for each workspace by itself, so that workspaces are served in turn; crashed groups come first. Within a
-- reaction, streams come in the order of due_at, which leaves out those that wait for a retry; rank only orders reactions.
CREATE INDEX follow_ready ON {schema}.follow (shard, reaction, workspace, crash_group DESC, due_at)
    WHERE holder IS NULL AND NOT blocked AND due > watermark;

------------------------------------------------------------------------------------------------------------------------
-- Lifecycles

-- The config of a lifecycle that is in force. While a change is examined, wanted is the new one, and both are obeyed.
-- claims are the statuses that only a claim leads into, while a change is examined those of both configs. origin says
-- whether a program brought the config, with its handlers, or the HTTP API (door).
CREATE TABLE {schema}.lifecycle (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    name       text        COLLATE "C" NOT NULL,
    revision   bigint      NOT NULL CHECK (revision > 0),
    statuses   json        NOT NULL,
    config     text        NOT NULL,
    wanted     json,
    updated_at timestamptz NOT NULL,
    origin     text        COLLATE "C" NOT NULL DEFAULT 'program' CHECK (origin IN ('program', 'door')),
    claims     json,
    PRIMARY KEY (shard, workspace, name)
);
CREATE INDEX lifecycle_door ON {schema}.lifecycle (shard, updated_at) WHERE origin = 'door';

-- The things that lifecycles govern, each with the operation that is under way on it.
-- phase: free; held, under a lease; due, to be resumed by a node or worker that has the handler; uncertain, until a person
-- says what happened. The columns of an operation stay until the next, so that who ends it again gets the same answer.
-- plan is the step as the config had it when the operation was claimed; a plan of another operation does not count. begun
-- counts the effects that may have happened. manual is a claim that nobody resumes. queue is who takes a due operation:
-- the workers of a handler, or, where it is NULL, a node that has the lifecycle; stage is which of its handlers is next.
-- side marks a row beside one in a table of the user's own, with the status that was last seen there.
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
    plan       jsonb,
    quiet      boolean     NOT NULL DEFAULT false,
    lost       bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (shard, workspace, lifecycle, id)
) WITH (fillfactor = 80);
CREATE INDEX entity_held ON {schema}.entity ((shard + 0), until) WHERE holder IS NOT NULL;
CREATE INDEX entity_due ON {schema}.entity ((shard + 0), (coalesce(queue, 'l:' || lifecycle)), due_at) WHERE phase = 'due';
CREATE UNIQUE INDEX entity_open ON {schema}.entity ((shard + 0), workspace, operation) WHERE phase <> 'free';
CREATE INDEX entity_lost ON {schema}.entity ((shard + 0), workspace) WHERE lost > 0;
-- As entity_due, for each workspace by itself, so that workspaces are served in turn. It begins with another expression, so
-- that a statement cannot use entity_due for it, and read what is due in all workspaces.
CREATE INDEX entity_turn ON {schema}.entity ((0 + shard), (coalesce(queue, 'l:' || lifecycle)), workspace, due_at) WHERE phase = 'due';

-- The effects of an operation or a step. ordinal counts those of one name. epoch is that of the attempt that began it last.
CREATE TABLE {schema}.effect (
    shard     smallint    NOT NULL,
    workspace text        COLLATE "C" NOT NULL,
    operation text        COLLATE "C" NOT NULL,
    name      text        COLLATE "C" NOT NULL,
    ordinal   integer     NOT NULL,
    epoch     bigint      NOT NULL,
    state     text        COLLATE "C" NOT NULL, -- begun, done, notDone
    policy    text        COLLATE "C" NOT NULL, -- retry, probe, hold
    result    json,
    begun_at  timestamptz NOT NULL,
    ended_at  timestamptz,
    PRIMARY KEY (shard, workspace, operation, name, ordinal)
);

-- Calls of effects by holders that had lost their lease. A row is written once and changes no operation; seen_at is when a
-- person acknowledged it.
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

-- Steps that were refused, with their requesters: a best-effort log.
CREATE TABLE {schema}.attempt (
    shard     smallint    NOT NULL,
    workspace text        COLLATE "C" NOT NULL,
    lifecycle text        COLLATE "C" NOT NULL,
    entity    text        COLLATE "C" NOT NULL,
    id        uuid        NOT NULL,
    step      text        COLLATE "C" NOT NULL,
    requester text        COLLATE "C" NOT NULL,
    code      text        COLLATE "C" NOT NULL,
    detail    json        NOT NULL,
    at        timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, lifecycle, entity, id)
);
CREATE INDEX attempt_at ON {schema}.attempt (shard, at);

------------------------------------------------------------------------------------------------------------------------
-- Runs

-- Workflow definitions. They never change.
CREATE TABLE {schema}.definition (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    body       json        NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, id)
);

-- Executions of definitions. A change adds as many to the version as it writes events. step and visit are where the run
-- is. memo is what expressions may still look at. prune_at is when a finished run may be deleted.
CREATE TABLE {schema}.run (
    shard            smallint    NOT NULL,
    workspace        text        COLLATE "C" NOT NULL,
    id               text        COLLATE "C" NOT NULL,
    definition       text        COLLATE "C" NOT NULL,
    key              text        COLLATE "C",
    status           text        COLLATE "C" NOT NULL,
    version          bigint      NOT NULL,
    input            json        NOT NULL,
    state            json        NOT NULL,
    memo             json        NOT NULL,
    output           json,
    error            text,
    step             text        COLLATE "C" NOT NULL,
    visit            bigint      NOT NULL,
    cancel_requested boolean     NOT NULL,
    created_at       timestamptz NOT NULL,
    started_at       timestamptz,
    finished_at      timestamptz,
    prune_at         timestamptz,
    updated_at       timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, id)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX run_key ON {schema}.run (shard, workspace, key) WHERE key IS NOT NULL;
CREATE INDEX run_live ON {schema}.run (shard, workspace, status, id) WHERE status NOT IN ('COMPLETED', 'CANCELLED');
CREATE INDEX run_prune ON {schema}.run (shard, prune_at) WHERE prune_at IS NOT NULL;

-- The visits of a run's steps, numbered by n, with their leases. handler is who does the step, '' for the engine itself.
-- due_at is when a step without a holder is due; later is the same while the run is paused. deadline is how long an event
-- or a decision is waited for. begun counts the effects that may have happened; uncertain waits for a person. next is
-- where the run goes on behind a finished step. fired is the operation of a transition.
CREATE TABLE {schema}.step (
    shard       smallint    NOT NULL,
    workspace   text        COLLATE "C" NOT NULL,
    run         text        COLLATE "C" NOT NULL,
    name        text        COLLATE "C" NOT NULL,
    visit       bigint      NOT NULL,
    n           bigint      NOT NULL,
    type        text        COLLATE "C" NOT NULL,
    handler     text        COLLATE "C" NOT NULL,
    status      text        COLLATE "C" NOT NULL,
    input       json        NOT NULL,
    output      json,
    error       text,
    next        text        COLLATE "C",
    attempts    bigint      NOT NULL,
    failures    bigint      NOT NULL,
    holder      text,
    epoch       bigint      NOT NULL,
    until       timestamptz,
    deaths      bigint      NOT NULL,
    timeout     bigint      NOT NULL, -- in ms
    taken_at    timestamptz,
    due_at      timestamptz,
    later       timestamptz,
    deadline    timestamptz,
    begun       bigint      NOT NULL,
    uncertain   boolean     NOT NULL,
    safety      text        COLLATE "C" NOT NULL,
    unknown     text        COLLATE "C" NOT NULL,
    signal      text        COLLATE "C",
    fired       text        COLLATE "C",
    created_at  timestamptz NOT NULL,
    started_at  timestamptz,
    finished_at timestamptz,
    quiet       boolean     NOT NULL DEFAULT false,
    lost        bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (shard, workspace, run, name, visit)
) WITH (fillfactor = 70);
-- Steps by their number. All columns but n are expressions, so that it serves no statement that looks for a name.
CREATE INDEX step_n ON {schema}.step ((shard + 0), (workspace || '/' || run), n);
CREATE INDEX step_due ON {schema}.step (shard, handler, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX step_held ON {schema}.step (shard, until) WHERE holder IS NOT NULL;
CREATE INDEX step_uncertain ON {schema}.step (shard, workspace, run, name, visit) WHERE uncertain;
CREATE INDEX step_lost ON {schema}.step ((shard + 0), workspace) WHERE lost > 0;
-- As step_due, for each workspace by itself, so that workspaces are served in turn.
CREATE INDEX step_turn ON {schema}.step ((shard + 0), handler, workspace, due_at) WHERE due_at IS NOT NULL;

-- Signals that were sent to a run, in the order of n. taken is the step and visit that received one.
CREATE TABLE {schema}.signal (
    shard     smallint    NOT NULL,
    workspace text        COLLATE "C" NOT NULL,
    run       text        COLLATE "C" NOT NULL,
    id        text        COLLATE "C" NOT NULL,
    n         bigint      NOT NULL,
    type      text        COLLATE "C" NOT NULL,
    payload   json        NOT NULL,
    taken     text        COLLATE "C",
    at        timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, run, id)
);
CREATE INDEX signal_inbox ON {schema}.signal (shard, workspace, run, type, n) WHERE taken IS NULL;

-- Decisions that a run waits for. Each is made once.
CREATE TABLE {schema}.approval (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    run        text        COLLATE "C" NOT NULL,
    step       text        COLLATE "C" NOT NULL,
    visit      bigint      NOT NULL,
    prompt     text        NOT NULL,
    requesters json        NOT NULL,
    status     text        COLLATE "C" NOT NULL,
    actor      text,
    label      text,
    content    json,
    expires_at timestamptz,
    created_at timestamptz NOT NULL,
    decided_at timestamptz,
    PRIMARY KEY (shard, workspace, run, step, visit)
);
CREATE INDEX approval_pending ON {schema}.approval (shard, workspace, run, step, visit) WHERE status = 'pending';

------------------------------------------------------------------------------------------------------------------------
-- Batches

-- balance is the sum of the wallet's ledger, and version the number of its last row. negative says that the balance may be
-- below zero.
CREATE TABLE {schema}.wallet (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    balance    bigint      NOT NULL,
    negative   boolean     NOT NULL,
    version    bigint      NOT NULL CHECK (version >= 0),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, id)
) WITH (fillfactor = 70);

-- Rows are only inserted. n counts them, from 1; balance is the wallet's after the row. A reference names what a row is
-- for, and stands once.
CREATE TABLE {schema}.ledger (
    shard     smallint    NOT NULL,
    workspace text        COLLATE "C" NOT NULL,
    wallet    text        COLLATE "C" NOT NULL,
    n         bigint      NOT NULL,
    delta     bigint      NOT NULL,
    balance   bigint      NOT NULL,
    reason    text        COLLATE "C" NOT NULL,
    reference text        COLLATE "C" NOT NULL,
    at        timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, wallet, n)
);
CREATE UNIQUE INDEX ledger_reference ON {schema}.ledger ((shard + 0), workspace, wallet, reference);

-- Items of work that are paid for, one by one, from a wallet. They are numbered from 1 and first taken in that order:
-- those behind next were never taken, cost nothing yet, and are decided by the end of the batch. The counts are of the
-- others: waiting were taken before and are due again; running are leased; succeeded, of which some are accepted; failed
-- were given up, and what they cost was returned; cancelled. dirty counts those failed or cancelled that are not cleaned
-- up yet. charged and refunded are what went from the wallet and back to it, in all. need is what the next item costs, of
-- a batch that is PAUSED for lack of it. due_at is when the batch is to be visited: it is cancelled, or may be complete.
CREATE TABLE {schema}.batch (
    shard            smallint    NOT NULL,
    workspace        text        COLLATE "C" NOT NULL,
    id               text        COLLATE "C" NOT NULL,
    wallet           text        COLLATE "C" NOT NULL,
    handler          text        COLLATE "C" NOT NULL,
    status           text        COLLATE "C" NOT NULL,
    parallel         bigint      NOT NULL,
    attempts         bigint      NOT NULL,
    allowed          bigint      NOT NULL, -- deaths
    timeout          bigint      NOT NULL, -- in ms
    undo             boolean     NOT NULL,
    artifacts        boolean     NOT NULL,
    sealed           boolean     NOT NULL,
    cancel_requested boolean     NOT NULL,
    items            bigint      NOT NULL,
    next             bigint      NOT NULL,
    waiting          bigint      NOT NULL,
    running          bigint      NOT NULL,
    succeeded        bigint      NOT NULL,
    accepted         bigint      NOT NULL,
    failed           bigint      NOT NULL,
    cancelled        bigint      NOT NULL,
    dirty            bigint      NOT NULL,
    charged          bigint      NOT NULL,
    refunded         bigint      NOT NULL,
    need             bigint      NOT NULL,
    version          bigint      NOT NULL,
    error            text,
    due_at           timestamptz,
    served_at        timestamptz NOT NULL,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, id)
) WITH (fillfactor = 50);
CREATE INDEX batch_due ON {schema}.batch (shard, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX batch_live ON {schema}.batch ((shard + 0), handler) WHERE status NOT IN ('CANCELLED', 'COMPLETED');

-- The items, with their leases. charged is what was taken for the item, once. late is until when a holder may be at work
-- whose lease was ended from outside. sweep_at is when what a failed or cancelled item left is to be cleaned up; who does
-- so holds the item until then, and sweeps is the epoch of that.
CREATE TABLE {schema}.item (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    batch      text        COLLATE "C" NOT NULL,
    key        text        COLLATE "C" NOT NULL,
    n          bigint      NOT NULL,
    cost       bigint      NOT NULL,
    charged    bigint      NOT NULL,
    state      text        COLLATE "C" NOT NULL,
    decision   text        COLLATE "C",
    input      json        NOT NULL,
    output     json,
    error      text,
    failures   bigint      NOT NULL,
    holder     text,
    epoch      bigint      NOT NULL,
    until      timestamptz,
    deaths     bigint      NOT NULL,
    taken_at   timestamptz,
    due_at     timestamptz,
    late       timestamptz,
    sweep_at   timestamptz,
    sweeps     bigint      NOT NULL,
    dirty      boolean     NOT NULL,
    updated_at timestamptz NOT NULL,
    quiet      boolean     NOT NULL DEFAULT false,
    lost       bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (shard, workspace, batch, key)
) WITH (fillfactor = 70);
-- Items by their number. All columns but n are expressions, so that it serves no statement that looks for a key: of a
-- table that the planner knows nothing of yet it would seem as good as the primary key, and read the whole batch.
CREATE INDEX item_n ON {schema}.item ((shard + 0), (workspace || '/' || batch), n);
CREATE INDEX item_waiting ON {schema}.item (shard, workspace, batch, due_at) WHERE state = 'waiting';
CREATE INDEX item_held ON {schema}.item (shard, workspace, batch, until) WHERE holder IS NOT NULL;
CREATE INDEX item_sweep ON {schema}.item (shard, sweep_at) WHERE sweep_at IS NOT NULL;
CREATE INDEX item_lost ON {schema}.item ((shard + 0), workspace) WHERE lost > 0;
-- As item_sweep, for each workspace by itself, so that workspaces are served in turn.
CREATE INDEX item_turn ON {schema}.item ((shard + 0), workspace, sweep_at) WHERE sweep_at IS NOT NULL;

------------------------------------------------------------------------------------------------------------------------
-- Scopes

-- Versioned state. A NULL state is a tombstone: the version goes on, so that a scope that is deleted and made again never
-- has an old version. expires_at is when a scope ends, or when a tombstone is deleted. born is the version that the row
-- began with.
CREATE TABLE {schema}.scope (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    kind       text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    version    bigint      NOT NULL,
    state      jsonb,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    expires_at timestamptz,
    born       bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (shard, workspace, kind, id)
) WITH (fillfactor = 80);
CREATE INDEX scope_expires ON {schema}.scope (shard, expires_at) WHERE expires_at IS NOT NULL;

-- The version that the next new scope of a kind begins with: above every version that a deleted tombstone had.
CREATE TABLE {schema}.scope_floor (
    shard     smallint NOT NULL,
    workspace text     COLLATE "C" NOT NULL,
    kind      text     COLLATE "C" NOT NULL,
    version   bigint   NOT NULL,
    PRIMARY KEY (shard, workspace, kind)
);

------------------------------------------------------------------------------------------------------------------------
-- The HTTP API

-- API keys. Only the SHA-256 of the secret is stored. A key belongs to a workspace, but is looked up before that is
-- known. successor is the key that it was rotated to, origin the first of the keys that it comes from by rotations; NULL
-- for a new one. handlers are those whose tasks the key may do; an empty list means all.
CREATE TABLE {schema}.api_key (
    id         text        COLLATE "C" PRIMARY KEY,
    workspace  text        COLLATE "C" NOT NULL,
    name       text        NOT NULL,
    role       text        COLLATE "C" NOT NULL CHECK (role IN ('read', 'operate', 'worker', 'admin')),
    requesters json        NOT NULL,
    hash       text        COLLATE "C" NOT NULL,
    rate       integer     NOT NULL CHECK (rate >= 0),
    version    bigint      NOT NULL CHECK (version >= 0),
    successor  text        COLLATE "C",
    created_by text        NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    handlers   json        NOT NULL DEFAULT '[]',
    origin     text
);
CREATE INDEX api_key_workspace ON {schema}.api_key (workspace, id);

-- Requests with an idempotency key. state: held, while a holder works on it; done, with its answer; operation, where the
-- answer is the outcome of that.
CREATE TABLE {schema}.request (
    shard       smallint    NOT NULL,
    workspace   text        COLLATE "C" NOT NULL,
    key         text        COLLATE "C" NOT NULL,
    fingerprint text        COLLATE "C" NOT NULL,
    state       text        COLLATE "C" NOT NULL,
    holder      text,
    epoch       bigint      NOT NULL,
    until       timestamptz,
    operation   text        COLLATE "C",
    subject     text        COLLATE "C",
    status      integer,
    answer      text,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, key)
) WITH (fillfactor = 80);
CREATE INDEX request_expires ON {schema}.request ((shard + 0), expires_at);

-- The tokens of claims that were taken over HTTP. Only the SHA-256 is stored.
CREATE TABLE {schema}.token (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    hash       text        COLLATE "C" NOT NULL,
    lifecycle  text        COLLATE "C" NOT NULL,
    entity     text        COLLATE "C" NOT NULL,
    operation  text        COLLATE "C" NOT NULL,
    epoch      bigint      NOT NULL,
    requester  text        COLLATE "C" NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, hash)
);
CREATE INDEX token_expires ON {schema}.token ((shard + 0), expires_at);

-- Handlers that are no functions of a program: workers elsewhere, and URLs that are called. The secret that calls are
-- signed with is encrypted.
CREATE TABLE {schema}.handler (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    name       text        COLLATE "C" NOT NULL,
    kind       text        COLLATE "C" NOT NULL CHECK (kind IN ('http', 'worker')),
    url        text        NOT NULL,
    safety     text        COLLATE "C" NOT NULL,
    unknown    text        COLLATE "C" NOT NULL,
    timeout    bigint      NOT NULL CHECK (timeout >= 0),
    secret     text        NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, name)
);

-- Webhooks: URLs that events are sent to, each by the reaction $hook:<id>. The secrets that messages are signed with are
-- encrypted: the present one, and the former while messages are signed with both. A removed webhook stays without its
-- secrets, for its history.
CREATE TABLE {schema}.webhook (
    shard        smallint    NOT NULL,
    workspace    text        COLLATE "C" NOT NULL,
    id           text        COLLATE "C" NOT NULL,
    name         text        NOT NULL,
    url          text        NOT NULL,
    events       json        NOT NULL,
    streams      text        NOT NULL,
    secret       text        NOT NULL,
    former       text,
    former_until timestamptz,
    version      bigint      NOT NULL CHECK (version >= 0),
    created_by   text        NOT NULL,
    created_at   timestamptz NOT NULL,
    rotated_at   timestamptz,
    removed_at   timestamptz,
    PRIMARY KEY (shard, workspace, id)
);

------------------------------------------------------------------------------------------------------------------------
-- Functions. Each has a search_path of its own: it calls what PostgreSQL has, and nothing that others define (decision 031).

-- A merge patch (RFC 7396). Members are merged at once: one after the other, each would copy the whole.
CREATE FUNCTION {schema}.merge_patch(target jsonb, patch jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF jsonb_typeof(patch) <> 'object' THEN
        RETURN patch;
    END IF;
    IF target IS NULL OR jsonb_typeof(target) <> 'object' THEN
        target := '{}';
    END IF;
    RETURN coalesce((
        SELECT jsonb_object_agg(coalesce(p.key, t.key),
                   CASE WHEN p.key IS NULL THEN t.value
                        WHEN jsonb_typeof(p.value) = 'object' THEN {schema}.merge_patch(t.value, p.value)
                        ELSE p.value END)
          FROM jsonb_each(target) AS t FULL JOIN jsonb_each(patch) AS p ON p.key = t.key
         WHERE p.key IS NULL OR jsonb_typeof(p.value) <> 'null'), '{}');
END $$;

-- The length of a document without the spaces that PostgreSQL writes.
CREATE FUNCTION {schema}.json_size(doc jsonb) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT octet_length(doc::text) - coalesce((
        SELECT sum(CASE jsonb_typeof(v.item)
                   WHEN 'array' THEN greatest(jsonb_array_length(v.item) - 1, 0)
                   WHEN 'object' THEN greatest(2 * (SELECT count(*) FROM jsonb_object_keys(v.item)) - 1, 0)
                   ELSE 0 END)
          FROM jsonb_path_query(doc, 'strict $.**') AS v(item)), 0)
$$;

-- The state of a scope after an edit, or NULL if the edit is refused: the field is of another kind, the sum would not fit
-- 64 bits, or the state would be too large. A null field counts as missing. An edit that makes a state smaller is never
-- refused.
CREATE FUNCTION {schema}.scope_edit(state jsonb, op text, field text, name text, item jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old  jsonb := nullif(state -> field, 'null');
    sum  numeric;
    made jsonb;
BEGIN
    CASE op
    WHEN 'inc' THEN
        IF old IS NULL THEN
            made := state || jsonb_build_object(field, item);
        ELSIF jsonb_typeof(old) <> 'number' OR old #>> '{}' !~ '^-?[0-9]{1,19}$' THEN
            RETURN NULL;
        ELSE
            sum := (old #>> '{}')::numeric;
            IF sum NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
                RETURN NULL;
            END IF;
            sum := sum + (item #>> '{}')::numeric;
            IF sum NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
                RETURN NULL;
            END IF;
            made := state || jsonb_build_object(field, sum);
        END IF;
    WHEN 'patch' THEN
        made := {schema}.merge_patch(state, item);
    WHEN 'push' THEN
        IF old IS NULL THEN
            made := state || jsonb_build_object(field, jsonb_build_array(item));
        ELSIF jsonb_typeof(old) <> 'array' THEN
            RETURN NULL;
        ELSE
            made := state || jsonb_build_object(field, old || jsonb_build_array(item));
        END IF;
    WHEN 'set' THEN
        IF old IS NOT NULL AND jsonb_typeof(old) <> 'object' THEN
            RETURN NULL;
        END IF;
        made := state || jsonb_build_object(field, coalesce(old, '{}') || jsonb_build_object(name, item));
    WHEN 'unset' THEN
        IF old IS NULL THEN
            RETURN state;
        ELSIF jsonb_typeof(old) <> 'object' THEN
            RETURN NULL;
        END IF;
        made := state || jsonb_build_object(field, old - name);
    END CASE;
    IF octet_length(made::text) > 1048576 AND {schema}.json_size(made) > 1048576 AND {schema}.json_size(made) >= {schema}.json_size(state) THEN
        RETURN NULL;
    END IF;
    RETURN made;
END $$;

-- Several edits of one scope, each on the state that the one before it left. A verdict: 0 refused, 1 changed, 2 changed
-- nothing, 3 not at the wanted version.
CREATE FUNCTION {schema}.scope_edits(version bigint, alive boolean, state jsonb,
    members bigint[], ops text[], fields text[], names text[], items jsonb[], wants bigint[])
RETURNS TABLE (made_member bigint, made_version bigint, made_alive boolean, made_state jsonb, made_verdict bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 64 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    made jsonb;
BEGIN
    FOR i IN 1 .. array_length(members, 1) LOOP
        IF wants[i] IS NOT NULL AND wants[i] <> (CASE WHEN alive THEN version ELSE -1 END) AND NOT (wants[i] = -2 AND alive) THEN
            made_verdict := 3;
        ELSE
            made := {schema}.scope_edit(state, ops[i], fields[i], names[i], items[i]);
            IF made IS NULL THEN
                made_verdict := 0;
            ELSIF (alive OR ops[i] = 'unset') AND made = state THEN
                made_verdict := 2;
            ELSE
                made_verdict := 1;
                version := version + 1;
                alive := true;
                state := made;
            END IF;
        END IF;
        made_member := members[i];
        made_version := version;
        made_alive := alive;
        made_state := state;
        RETURN NEXT;
    END LOOP;
END $$;

-- The runtime role may not delete events and history. It calls the two functions below, which run as the owner of the
-- tables and delete what retention permits. After every migration the program sees to it whose they are and who may call
-- them. Their parameters are those of the statements that call them (books.dropevents, history.prune).

-- Deletes events of a stream that a truncate or a close has dropped: below the first one kept, never the last, and none
-- that is younger than ten minutes (books.Grace). Returns their count.
-- $1 shard, $2 workspace, $3 stream, $4 from, $5 to a version, not included
CREATE FUNCTION {schema}.drop_events(smallint, text, text, bigint, bigint) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $$
WITH gone AS (
    DELETE FROM {schema}.event e
     USING {schema}.stream s
     WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.name = $3::text AND s.first >= $5::bigint
       AND e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name
       AND e.version >= $4::bigint AND e.version < $5::bigint AND e.version < s.head
       AND e.at < (pg_catalog.clock_timestamp() + (SELECT c.shift FROM {schema}.clock c)) - interval '10 minutes'
    RETURNING 1
)
SELECT pg_catalog.count(*) FROM gone
$$;

-- Deletes, from the beginning of the streams on a page of the history, the events that are older than $6, an hour at least
-- (history.Shortest), but neither the last one of a thing that exists nor those that a reaction has still to handle.
-- Returns a row for each.
-- $1 shard, $2 workspace (not used), $3 after, $4 up to, both ids as text, $5 limit, $6 how long history is kept, in ms
CREATE FUNCTION {schema}.prune_history(smallint, text, text, text, bigint, bigint) RETURNS SETOF integer
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $$
WITH page AS MATERIALIZED (
    SELECT h.shard, h.workspace, h.stream, h.version
      FROM {schema}.history h
     WHERE h.shard = $1::smallint AND h.id > $3::text::uuid AND h.id < $4::text::uuid AND $2::text IS NOT NULL
     ORDER BY h.shard, h.id
     LIMIT $5::bigint
), tops AS MATERIALIZED (
    SELECT p.shard, p.workspace, p.stream, pg_catalog.max(p.version) AS top
      FROM page p
     WHERE NOT EXISTS (SELECT 1 FROM {schema}.reaction r
                        WHERE r.shard = ANY (ARRAY[p.shard]) AND r.workspace = p.workspace AND r.source = 'history'
                          AND (r.state = 'waiting'
                               OR (SELECT true FROM {schema}.due d WHERE d.shard = r.shard AND d.reaction = r.name AND d.workspace = r.workspace
                                                                     AND d.stream = p.stream LIMIT 1)))
     GROUP BY p.shard, p.workspace, p.stream
)
DELETE FROM {schema}.history h
 USING tops t
 WHERE h.shard = ANY (ARRAY[t.shard]) AND h.workspace = t.workspace AND h.stream = t.stream AND h.version <= t.top
   AND h.at < (pg_catalog.clock_timestamp() + (SELECT c.shift FROM {schema}.clock c)) - greatest($6::bigint, 3600000::bigint)::float8 * interval '1 ms'
   AND (pg_catalog.left(t.stream, 6) IN ('$void/', '$mark/')
        OR (pg_catalog.left(t.stream, 7) = '$scope/' AND h.name IN ('deleted', 'expired')
            AND NOT EXISTS (SELECT 1 FROM {schema}.scope s WHERE s.shard = ANY (ARRAY[t.shard]) AND s.workspace = t.workspace
                                                              AND s.kind = pg_catalog.split_part(t.stream, '/', 2)
                                                              AND s.id = pg_catalog.substr(t.stream, 9 + pg_catalog.length(pg_catalog.split_part(t.stream, '/', 2)))))
        OR EXISTS (SELECT 1 FROM {schema}.history x WHERE x.shard = ANY (ARRAY[t.shard]) AND x.workspace = t.workspace AND x.stream = t.stream
                                                       AND x.version > h.version))
   AND NOT EXISTS (SELECT 1 FROM {schema}.reaction r
                    WHERE r.shard = ANY (ARRAY[t.shard]) AND r.workspace = t.workspace AND r.source = 'history'
                      AND (SELECT f.watermark < h.version AND f.due > f.watermark FROM {schema}.follow f
                            WHERE f.shard = r.shard AND f.workspace = r.workspace AND f.reaction = r.name AND f.stream = t.stream))
RETURNING 1
$$;
