-- Wallets: a balance that is only added to, and the ledger that it is the sum of.
-- min_reader: 7

-- balance is the sum of the ledger, and version the number of its last row. negative
-- says that the balance may be below zero.
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

-- Rows are only inserted. n counts them, from 1; balance is the wallet's behind the row.
-- A reference names what a row is for, and has one.
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
