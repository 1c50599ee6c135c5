-- Runs: workflows that are taken step by step.
-- min_reader: 7

-- As the tables that every command writes to, these have no CHECKs here: SQLite's have
-- them, where the same tests run.

CREATE TABLE {schema}.definition (
    shard            smallint NOT NULL,
    workspace        text COLLATE "C" NOT NULL,
    id               text COLLATE "C" NOT NULL,
    body             json NOT NULL,
    created_at       timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, id)
);

-- Every change of a run adds as many to its version as it writes events. step and visit
-- are where it stands. memo is what expressions may still look at. prune_at is when a run
-- that is over may go.
CREATE TABLE {schema}.run (
    shard            smallint NOT NULL,
    workspace        text COLLATE "C" NOT NULL,
    id               text COLLATE "C" NOT NULL,
    definition       text COLLATE "C" NOT NULL,
    key              text COLLATE "C",
    status           text COLLATE "C" NOT NULL,
    version          bigint NOT NULL,
    input            json NOT NULL,
    state            json NOT NULL,
    memo             json NOT NULL,
    output           json,
    error            text,
    step             text COLLATE "C" NOT NULL,
    visit            bigint NOT NULL,
    cancel_requested boolean NOT NULL,
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

-- One visit of a step. The four columns of a hold, as on a task. handler is who does it, ''
-- if the engine itself. due_at is when it is to be looked at, of a step that nobody holds;
-- later is that, of a run that is paused. deadline is how long somebody is waited for.
-- begun counts the effects that may have happened; uncertain waits for a person. next is
-- where the run goes on behind a step that is over. fired is the operation of a transition.
CREATE TABLE {schema}.step (
    shard            smallint NOT NULL,
    workspace        text COLLATE "C" NOT NULL,
    run              text COLLATE "C" NOT NULL,
    name             text COLLATE "C" NOT NULL,
    visit            bigint NOT NULL,
    n                bigint NOT NULL,
    type             text COLLATE "C" NOT NULL,
    handler          text COLLATE "C" NOT NULL,
    status           text COLLATE "C" NOT NULL,
    input            json NOT NULL,
    output           json,
    error            text,
    next             text COLLATE "C",
    attempts         bigint NOT NULL,
    failures         bigint NOT NULL,
    holder           text,
    epoch            bigint NOT NULL,
    until            timestamptz,
    deaths           bigint NOT NULL,
    timeout          bigint NOT NULL, -- in ms
    taken_at         timestamptz,
    due_at           timestamptz,
    later            timestamptz,
    deadline         timestamptz,
    begun            bigint NOT NULL,
    uncertain        boolean NOT NULL,
    safety           text COLLATE "C" NOT NULL,
    unknown          text COLLATE "C" NOT NULL,
    signal           text COLLATE "C",
    fired            text COLLATE "C",
    created_at       timestamptz NOT NULL,
    started_at       timestamptz,
    finished_at      timestamptz,
    PRIMARY KEY (shard, workspace, run, name, visit)
) WITH (fillfactor = 70);

-- Steps in their order. It is one of expressions, so that it can serve nobody who looks a
-- step up by its name.
CREATE INDEX step_n ON {schema}.step ((shard + 0), (workspace || '/' || run), n);
CREATE INDEX step_due ON {schema}.step (shard, handler, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX step_held ON {schema}.step (shard, until) WHERE holder IS NOT NULL;
CREATE INDEX step_uncertain ON {schema}.step (shard, workspace, run, name, visit) WHERE uncertain;

-- What a run was told, in the order of n. taken says which visit of which step took it.
CREATE TABLE {schema}.signal (
    shard            smallint NOT NULL,
    workspace        text COLLATE "C" NOT NULL,
    run              text COLLATE "C" NOT NULL,
    id               text COLLATE "C" NOT NULL,
    n                bigint NOT NULL,
    type             text COLLATE "C" NOT NULL,
    payload          json NOT NULL,
    taken            text COLLATE "C",
    at               timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, run, id)
);

CREATE INDEX signal_inbox ON {schema}.signal (shard, workspace, run, type, n) WHERE taken IS NULL;

-- What somebody is to decide: once.
CREATE TABLE {schema}.approval (
    shard            smallint NOT NULL,
    workspace        text COLLATE "C" NOT NULL,
    run              text COLLATE "C" NOT NULL,
    step             text COLLATE "C" NOT NULL,
    visit            bigint NOT NULL,
    prompt           text NOT NULL,
    requesters       json NOT NULL,
    status           text COLLATE "C" NOT NULL,
    actor            text,
    label            text,
    content          json,
    expires_at       timestamptz,
    created_at       timestamptz NOT NULL,
    decided_at       timestamptz,
    PRIMARY KEY (shard, workspace, run, step, visit)
);

CREATE INDEX approval_pending ON {schema}.approval (shard, workspace, run, step, visit) WHERE status = 'pending';
