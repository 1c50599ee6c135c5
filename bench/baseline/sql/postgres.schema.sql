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

CREATE TABLE {schema}.wallet (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    version    bigint      NOT NULL,
    balance    bigint      NOT NULL CHECK (balance >= 0),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, id)
) WITH (fillfactor = 80);

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
    PRIMARY KEY (shard, workspace, wallet, n),
    UNIQUE (shard, workspace, wallet, reference)
);

CREATE TABLE {schema}.batch (
    shard            smallint    NOT NULL,
    workspace        text        COLLATE "C" NOT NULL,
    id               text        COLLATE "C" NOT NULL,
    wallet           text        COLLATE "C" NOT NULL,
    handler          text        COLLATE "C" NOT NULL,
    status           text        COLLATE "C" NOT NULL,
    parallel         bigint      NOT NULL,
    attempts         bigint      NOT NULL,
    allowed          bigint      NOT NULL,
    timeout          bigint      NOT NULL,
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

CREATE INDEX batch_live ON {schema}.batch (shard, handler) WHERE status NOT IN ('CANCELLED', 'COMPLETED');
CREATE INDEX batch_due ON {schema}.batch (shard, due_at) WHERE due_at IS NOT NULL;

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
    PRIMARY KEY (shard, workspace, batch, key),
    UNIQUE (shard, workspace, batch, n)
) WITH (fillfactor = 70);

CREATE INDEX item_waiting ON {schema}.item (shard, workspace, batch, due_at) WHERE state = 'waiting';
CREATE INDEX item_held ON {schema}.item (shard, workspace, batch, until) WHERE holder IS NOT NULL;
CREATE INDEX item_sweep ON {schema}.item (shard, sweep_at) WHERE sweep_at IS NOT NULL;

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

CREATE UNIQUE INDEX step_n ON {schema}.step (shard, workspace, run, n);
CREATE INDEX step_due ON {schema}.step (shard, handler, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX step_held ON {schema}.step (shard, until) WHERE holder IS NOT NULL;
