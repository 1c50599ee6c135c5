-- Batches: items of work that are paid for, one by one, from a wallet.
-- min_reader: 7

-- As the tables that every command writes to, these have no CHECKs here: SQLite's have
-- them, where the same tests run.
--
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
    PRIMARY KEY (shard, workspace, batch, key)
) WITH (fillfactor = 70);

-- Items by their number. It is one of expressions, so that it can serve nobody who looks
-- an item up by its key: of a table that the planner knows nothing of yet, it would seem as
-- good as the primary key, and go through the whole batch.
CREATE INDEX item_n ON {schema}.item ((shard + 0), (workspace || '/' || batch), n);
CREATE INDEX item_waiting ON {schema}.item (shard, workspace, batch, due_at) WHERE state = 'waiting';
CREATE INDEX item_held ON {schema}.item (shard, workspace, batch, until) WHERE holder IS NOT NULL;
CREATE INDEX item_sweep ON {schema}.item (shard, sweep_at) WHERE sweep_at IS NOT NULL;
