-- Batches: items of work that are paid for, one by one, from a wallet.
-- min_reader: 7

-- Items are numbered from 1, and first taken in that order: those behind "next" were
-- never taken, cost nothing yet, and are decided by the end of the batch. The counts
-- are of the others: waiting were taken before and are due again; running are held;
-- succeeded, of which some are accepted; failed were given up, and what they cost was
-- returned; cancelled. dirty are those given up or cancelled that are not cleaned yet.
-- charged and refunded are what went from the wallet and back to it, in all.
-- need is what the next item costs, of a batch that is PAUSED for want of it. due_at is
-- when the batch is to be looked at: it is to be torn down, or might be at its end.
CREATE TABLE {schema}.batch (
    shard            smallint    NOT NULL,
    workspace        text        COLLATE "C" NOT NULL,
    id               text        COLLATE "C" NOT NULL,
    wallet           text        COLLATE "C" NOT NULL,
    handler          text        COLLATE "C" NOT NULL,
    status           text        COLLATE "C" NOT NULL CHECK (status IN ('PENDING', 'RUNNING', 'PAUSED', 'CANCELLING', 'CANCELLED', 'COMPLETED')),
    parallel         bigint      NOT NULL CHECK (parallel > 0),
    attempts         bigint      NOT NULL CHECK (attempts > 0),
    allowed          bigint      NOT NULL CHECK (allowed > 0), -- deaths
    timeout          bigint      NOT NULL CHECK (timeout > 0), -- in ms
    undo             boolean     NOT NULL,
    artifacts        boolean     NOT NULL,
    sealed           boolean     NOT NULL,
    cancel_requested boolean     NOT NULL,
    items            bigint      NOT NULL CHECK (items >= 0),
    next             bigint      NOT NULL CHECK (next BETWEEN 0 AND items),
    waiting          bigint      NOT NULL CHECK (waiting >= 0),
    running          bigint      NOT NULL CHECK (running >= 0),
    succeeded        bigint      NOT NULL CHECK (succeeded >= 0),
    accepted         bigint      NOT NULL CHECK (accepted BETWEEN 0 AND succeeded),
    failed           bigint      NOT NULL CHECK (failed >= 0),
    cancelled        bigint      NOT NULL CHECK (cancelled >= 0),
    dirty            bigint      NOT NULL CHECK (dirty >= 0),
    charged          bigint      NOT NULL CHECK (charged >= 0),
    refunded         bigint      NOT NULL CHECK (refunded BETWEEN 0 AND charged),
    need             bigint      NOT NULL,
    version          bigint      NOT NULL CHECK (version >= 0),
    error            text,
    due_at           timestamptz,
    served_at        timestamptz NOT NULL,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, id),
    CHECK (next = waiting + running + succeeded + failed + cancelled)
) WITH (fillfactor = 50);

CREATE INDEX batch_live ON {schema}.batch (shard, handler) WHERE status NOT IN ('CANCELLED', 'COMPLETED');
CREATE INDEX batch_due ON {schema}.batch (shard, due_at) WHERE due_at IS NOT NULL;

-- The four columns of a hold, as on a task. charged is what was taken for the item, once.
-- late is until when somebody may be at work whose hold was ended from outside.
-- sweep_at is when what the item left is to be cleaned, of one given up or cancelled; who
-- cleans it holds it until then, and sweeps is that hold's epoch.
CREATE TABLE {schema}.item (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    batch      text        COLLATE "C" NOT NULL,
    key        text        COLLATE "C" NOT NULL,
    n          bigint      NOT NULL CHECK (n > 0),
    cost       bigint      NOT NULL CHECK (cost >= 0),
    charged    bigint      NOT NULL CHECK (charged IN (0, cost)),
    state      text        COLLATE "C" NOT NULL CHECK (state IN ('pending', 'waiting', 'running', 'succeeded', 'failed', 'cancelled')),
    decision   text        COLLATE "C" CHECK (decision IN ('accepted', 'cancelled')),
    input      json        NOT NULL,
    output     json,
    error      text,
    failures   bigint      NOT NULL CHECK (failures >= 0),
    holder     text,
    epoch      bigint      NOT NULL CHECK (epoch >= 0),
    until      timestamptz,
    deaths     bigint      NOT NULL CHECK (deaths >= 0),
    taken_at   timestamptz,
    due_at     timestamptz,
    late       timestamptz,
    sweep_at   timestamptz,
    sweeps     bigint      NOT NULL CHECK (sweeps >= 0),
    dirty      boolean     NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, batch, key),
    UNIQUE (shard, workspace, batch, n),
    CHECK ((holder IS NULL) = (until IS NULL)),
    CHECK ((holder IS NOT NULL) = (state = 'running')),
    CHECK ((state = 'cancelled') = (decision IS NOT NULL AND decision = 'cancelled'))
) WITH (fillfactor = 70);

CREATE INDEX item_waiting ON {schema}.item (shard, workspace, batch, due_at) WHERE state = 'waiting';
CREATE INDEX item_held ON {schema}.item (shard, workspace, batch, until) WHERE holder IS NOT NULL;
CREATE INDEX item_sweep ON {schema}.item (shard, sweep_at) WHERE sweep_at IS NOT NULL;
