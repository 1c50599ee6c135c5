-- Batches: items of work that are paid for, one by one, from a wallet.
-- min_reader: 6

-- Items are numbered from 1, and first taken in that order: those behind "next" were
-- never taken, cost nothing yet, and are decided by the end of the batch. The counts
-- are of the others: waiting were taken before and are due again; running are held;
-- succeeded, of which some are accepted; failed were given up, and what they cost was
-- returned; cancelled. dirty are those given up or cancelled that are not cleaned yet.
-- charged and refunded are what went from the wallet and back to it, in all.
-- need is what the next item costs, of a batch that is PAUSED for want of it. due_at is
-- when the batch is to be looked at: it is to be torn down, or might be at its end.
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

-- The four columns of a hold, as on a task. charged is what was taken for the item, once.
-- late is until when somebody may be at work whose hold was ended from outside.
-- sweep_at is when what the item left is to be cleaned, of one given up or cancelled; who
-- cleans it holds it until then, and sweeps is that hold's epoch.
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
    PRIMARY KEY (shard, workspace, batch, key),
    UNIQUE (shard, workspace, batch, n),
    CHECK ((holder IS NULL) = (until IS NULL)),
    CHECK ((holder IS NOT NULL) = (state = 'running')),
    CHECK ((state = 'cancelled') = (decision IS NOT NULL AND decision = 'cancelled'))
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_item_waiting ON holdfast_item (shard, workspace, batch, due_at) WHERE state = 'waiting';
CREATE INDEX holdfast_item_held ON holdfast_item (shard, workspace, batch, until) WHERE holder IS NOT NULL;
CREATE INDEX holdfast_item_sweep ON holdfast_item (shard, sweep_at) WHERE sweep_at IS NOT NULL;
