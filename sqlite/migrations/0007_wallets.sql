-- Wallets: a balance that is only added to, and the ledger that it is the sum of.
-- min_reader: 6

-- balance is the sum of the ledger, and version the number of its last row. negative
-- says that the balance may be below zero.
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

-- Rows are only inserted. n counts them, from 1; balance is the wallet's behind the row.
-- A reference names what a row is for, and has one.
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
