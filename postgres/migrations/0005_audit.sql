-- The administrative actions, who did them, and what they changed.
-- min_reader: 3

-- An entry is inserted in the transaction of its action, and is never changed or deleted:
-- a role that runs nodes can only insert and read. subject is "kind/name". before and after are NULL where there is
-- nothing, and never hold a secret.
CREATE TABLE {schema}.audit (
    shard     smallint    NOT NULL,
    workspace text        COLLATE "C" NOT NULL,
    id        text        COLLATE "C" NOT NULL,
    action    text        COLLATE "C" NOT NULL,
    subject   text        COLLATE "C" NOT NULL,
    actor     text        COLLATE "C" NOT NULL,
    request   text        NOT NULL,
    before    json,
    after     json,
    at        timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, id)
);

-- Finds the requests of an operation. Most requests have none, and are not in the index.
CREATE INDEX request_operation ON {schema}.request (shard, workspace, operation, key) WHERE operation IS NOT NULL;
