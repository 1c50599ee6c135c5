-- The doors: API keys, requests that are known by a key, and the tokens of claims.
-- min_reader: 6

-- An API key. Only the SHA-256 of its secret is kept. It belongs to a workspace, but
-- is looked up before that is known. Its version is that of the last event of its
-- history; its successor is the key that it was rotated to.
CREATE TABLE holdfast_api_key (
    id          TEXT    NOT NULL PRIMARY KEY,
    workspace   TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    role        TEXT    NOT NULL CHECK (role IN ('read', 'operate', 'worker', 'admin')),
    requesters  TEXT    NOT NULL,
    hash        TEXT    NOT NULL,
    rate        INTEGER NOT NULL CHECK (rate >= 0),
    version     INTEGER NOT NULL CHECK (version >= 0),
    successor   TEXT,
    created_by  TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER,
    revoked_at  INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_api_key_workspace ON holdfast_api_key (workspace, id);

-- A request that a caller has given a key. state: held, while it is worked on by a
-- holder; done, with its answer; operation, where the answer is what became of that.
CREATE TABLE holdfast_request (
    shard       INTEGER NOT NULL,
    workspace   TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    holder      TEXT,
    epoch       INTEGER NOT NULL,
    until       INTEGER,
    operation   TEXT,
    subject     TEXT,
    status      INTEGER,
    answer      TEXT,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_request_expires ON holdfast_request (shard, expires_at);

-- The token of a claim that was taken over HTTP. Only its SHA-256 is kept.
CREATE TABLE holdfast_token (
    shard       INTEGER NOT NULL,
    workspace   TEXT    NOT NULL,
    hash        TEXT    NOT NULL,
    lifecycle   TEXT    NOT NULL,
    entity      TEXT    NOT NULL,
    operation   TEXT    NOT NULL,
    epoch       INTEGER NOT NULL,
    requester   TEXT    NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_token_expires ON holdfast_token (shard, expires_at);

-- Handlers that are not functions of a program: URLs that are called. The secret that
-- calls are signed with is sealed.
CREATE TABLE holdfast_handler (
    shard       INTEGER NOT NULL,
    workspace   TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    kind        TEXT    NOT NULL CHECK (kind IN ('http', 'worker')),
    url         TEXT    NOT NULL,
    safety      TEXT    NOT NULL,
    unknown     TEXT    NOT NULL,
    timeout     INTEGER NOT NULL CHECK (timeout >= 0),
    secret      TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, name)
) STRICT, WITHOUT ROWID;

-- Who brought a lifecycle's config: a program, with its handlers, or the door.
ALTER TABLE holdfast_lifecycle ADD COLUMN origin TEXT NOT NULL DEFAULT 'program' CHECK (origin IN ('program', 'door'));
CREATE INDEX holdfast_lifecycle_door ON holdfast_lifecycle (shard, updated_at) WHERE origin = 'door';

-- Webhooks: URLs that events are sent to, each by the reaction $hook:<id>. The secrets
-- that messages are signed with are sealed: the present one, and the former for as
-- long as messages are signed with both. Its version is that of the last event of its
-- history. One that is removed stays without its secrets, for its history.
CREATE TABLE holdfast_webhook (
    shard        INTEGER NOT NULL,
    workspace    TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    url          TEXT    NOT NULL,
    events       TEXT    NOT NULL,
    streams      TEXT    NOT NULL,
    secret       TEXT    NOT NULL,
    former       TEXT,
    former_until INTEGER,
    version      INTEGER NOT NULL CHECK (version >= 0),
    created_by   TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    rotated_at   INTEGER,
    removed_at   INTEGER,
    PRIMARY KEY (shard, workspace, id)
) STRICT, WITHOUT ROWID;

-- queue is who takes an operation up that is due: the workers of a handler or, where
-- it is NULL, a node that has the lifecycle. stage is which of its handlers is next.
ALTER TABLE holdfast_entity ADD COLUMN queue TEXT;
ALTER TABLE holdfast_entity ADD COLUMN stage TEXT;
DROP INDEX holdfast_entity_due;
CREATE INDEX holdfast_entity_due ON holdfast_entity (shard, coalesce(queue, 'l:' || lifecycle), due_at) WHERE phase = 'due';
