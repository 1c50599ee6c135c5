-- The administrative actions, who did them, and what they changed.
-- min_reader: 3

-- An entry is inserted in the transaction of its action, and is never changed or deleted.
-- subject is "kind/name". before and after are NULL where there is nothing, and never hold a secret.
CREATE TABLE holdfast_audit (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    id        TEXT    NOT NULL,
    action    TEXT    NOT NULL,
    subject   TEXT    NOT NULL,
    actor     TEXT    NOT NULL,
    request   TEXT    NOT NULL,
    before    TEXT,
    after     TEXT,
    at        INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, id)
) STRICT, WITHOUT ROWID;

-- Finds the requests of an operation. Most requests have none, and are not in the index.
CREATE INDEX holdfast_request_operation ON holdfast_request (shard, workspace, operation, key) WHERE operation IS NOT NULL;
