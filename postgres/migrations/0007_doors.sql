-- The doors: API keys, requests that are known by a key, and the tokens of claims.
-- min_reader: 7

-- An API key. Only the SHA-256 of its secret is kept. It belongs to a workspace, but
-- is looked up before that is known. Its version is that of the last event of its
-- history; its successor is the key that it was rotated to.
CREATE TABLE {schema}.api_key (
    id         text        COLLATE "C" PRIMARY KEY,
    workspace  text        COLLATE "C" NOT NULL,
    name       text        NOT NULL,
    role       text        COLLATE "C" NOT NULL CHECK (role IN ('read', 'operate', 'worker', 'admin')),
    requesters json        NOT NULL,
    hash       text        COLLATE "C" NOT NULL,
    rate       integer     NOT NULL CHECK (rate >= 0),
    version    bigint      NOT NULL CHECK (version >= 0),
    successor  text        COLLATE "C",
    created_by text        NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz
);
CREATE INDEX api_key_workspace ON {schema}.api_key (workspace, id);

-- A request that a caller has given a key. state: held, while it is worked on by a
-- holder; done, with its answer; operation, where the answer is what became of that.
CREATE TABLE {schema}.request (
    shard       smallint    NOT NULL,
    workspace   text        COLLATE "C" NOT NULL,
    key         text        COLLATE "C" NOT NULL,
    fingerprint text        COLLATE "C" NOT NULL,
    state       text        COLLATE "C" NOT NULL,
    holder      text,
    epoch       bigint      NOT NULL,
    until       timestamptz,
    operation   text        COLLATE "C",
    subject     text        COLLATE "C",
    status      integer,
    answer      text,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, key)
) WITH (fillfactor = 80);
CREATE INDEX request_expires ON {schema}.request (shard, expires_at);

-- The token of a claim that was taken over HTTP. Only its SHA-256 is kept.
CREATE TABLE {schema}.token (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    hash       text        COLLATE "C" NOT NULL,
    lifecycle  text        COLLATE "C" NOT NULL,
    entity     text        COLLATE "C" NOT NULL,
    operation  text        COLLATE "C" NOT NULL,
    epoch      bigint      NOT NULL,
    requester  text        COLLATE "C" NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, hash)
);
CREATE INDEX token_expires ON {schema}.token (shard, expires_at);

-- Handlers that are not functions of a program: URLs that are called. The secret that
-- calls are signed with is sealed.
CREATE TABLE {schema}.handler (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    name       text        COLLATE "C" NOT NULL,
    kind       text        COLLATE "C" NOT NULL CHECK (kind IN ('http', 'worker')),
    url        text        NOT NULL,
    safety     text        COLLATE "C" NOT NULL,
    unknown    text        COLLATE "C" NOT NULL,
    timeout    bigint      NOT NULL CHECK (timeout >= 0),
    secret     text        NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, name)
);

-- Who brought a lifecycle's config: a program, with its handlers, or the door.
ALTER TABLE {schema}.lifecycle ADD COLUMN origin text COLLATE "C" NOT NULL DEFAULT 'program' CHECK (origin IN ('program', 'door'));
CREATE INDEX lifecycle_door ON {schema}.lifecycle (shard, updated_at) WHERE origin = 'door';

-- Webhooks: URLs that events are sent to, each by the reaction $hook:<id>. The secrets
-- that messages are signed with are sealed: the present one, and the former for as
-- long as messages are signed with both. Its version is that of the last event of its
-- history. One that is removed stays without its secrets, for its history.
CREATE TABLE {schema}.webhook (
    shard        smallint    NOT NULL,
    workspace    text        COLLATE "C" NOT NULL,
    id           text        COLLATE "C" NOT NULL,
    name         text        NOT NULL,
    url          text        NOT NULL,
    events       json        NOT NULL,
    streams      text        NOT NULL,
    secret       text        NOT NULL,
    former       text,
    former_until timestamptz,
    version      bigint      NOT NULL CHECK (version >= 0),
    created_by   text        NOT NULL,
    created_at   timestamptz NOT NULL,
    rotated_at   timestamptz,
    removed_at   timestamptz,
    PRIMARY KEY (shard, workspace, id)
);

-- queue is who takes an operation up that is due: the workers of a handler or, where
-- it is NULL, a node that has the lifecycle. stage is which of its handlers is next.
ALTER TABLE {schema}.entity
    ADD COLUMN queue text COLLATE "C",
    ADD COLUMN stage text COLLATE "C";
DROP INDEX {schema}.entity_due;
CREATE INDEX entity_due ON {schema}.entity (shard, (coalesce(queue, 'l:' || lifecycle)), due_at) WHERE phase = 'due';
