-- Reactions: named code that follows streams; the feed over all streams;
-- closing the books; snapshots; and the keys of those whose data is encrypted.
-- min_reader: 3

-- Time can be moved only where somebody has said that it may be: elsewhere it is
-- the server's, and nothing else is asked.
ALTER TABLE {schema}.clock ADD COLUMN movable boolean NOT NULL DEFAULT false;

-- Versions below first are gone. A stream that is being closed is held; a closed
-- one takes no more events.
ALTER TABLE {schema}.stream
    ADD COLUMN first  bigint NOT NULL DEFAULT 0 CHECK (first >= 0),
    ADD COLUMN state  text   COLLATE "C" NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closing', 'closed')),
    ADD COLUMN holder text,
    ADD COLUMN epoch  bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    ADD COLUMN until  timestamptz,
    ADD CHECK ((holder IS NULL) = (until IS NULL)),
    ADD CHECK ((holder IS NOT NULL) = (state = 'closing'));
CREATE INDEX stream_held ON {schema}.stream (shard, until) WHERE holder IS NOT NULL;

-- Whose key the data is encrypted under, if it is.
ALTER TABLE {schema}.event ADD COLUMN subject text COLLATE "C";

-- A command that writes events knows which reactions there are by this number,
-- and is refused where it has changed.
CREATE TABLE {schema}.registry (
    shard     smallint NOT NULL,
    workspace text     COLLATE "C" NOT NULL,
    revision  bigint   NOT NULL CHECK (revision > 0),
    PRIMARY KEY (shard, workspace)
);

-- What each reaction follows. base is where the epochs of its holds begin, so
-- that one made again under the same name never meets an old holder. A reaction
-- waits until the transactions have ended that were under way when it was made:
-- they may have written without knowing of it. A removed one stays until all that
-- it left is gone.
CREATE TABLE {schema}.reaction (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    name       text        COLLATE "C" NOT NULL,
    source     text        COLLATE "C" NOT NULL CHECK (source IN ('event', 'history')),
    events     jsonb       NOT NULL,
    streams    text        COLLATE "C" NOT NULL,
    options    jsonb       NOT NULL,
    max_deaths integer     NOT NULL CHECK (max_deaths > 0),
    priority   integer     NOT NULL,
    base       bigint      NOT NULL CHECK (base >= 0),
    state      text        COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'live', 'removed')),
    waits      jsonb,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, name)
);
CREATE INDEX reaction_unfinished ON {schema}.reaction (shard, workspace, name) WHERE state <> 'live';

-- Marks, written with the events: this reaction has something to do on this
-- stream, up to this version. They are only inserted and deleted, so that an
-- append waits for nobody who works on the stream.
CREATE TABLE {schema}.due (
    shard     smallint NOT NULL,
    reaction  text     COLLATE "C" NOT NULL,
    workspace text     COLLATE "C" NOT NULL,
    stream    text     COLLATE "C" NOT NULL,
    version   bigint   NOT NULL CHECK (version >= 0),
    PRIMARY KEY (shard, reaction, workspace, stream, version)
);

-- Where a reaction stands on a stream: the last version handled, the last one
-- that is known to concern it, and the hold of whoever works on it. rank is the
-- time it is due less what its priority is worth. failing is the version that
-- failed last. generation counts the resets; version is that of its history.
CREATE TABLE {schema}.follow (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    reaction   text        COLLATE "C" NOT NULL,
    stream     text        COLLATE "C" NOT NULL,
    watermark  bigint      NOT NULL CHECK (watermark >= -1),
    due        bigint      NOT NULL CHECK (due >= -1),
    due_at     timestamptz NOT NULL,
    rank       timestamptz NOT NULL,
    failing    bigint,
    failures   integer     NOT NULL DEFAULT 0 CHECK (failures >= 0),
    blocked    boolean     NOT NULL DEFAULT false,
    error      text,
    holder     text,
    epoch      bigint      NOT NULL CHECK (epoch >= 0),
    until      timestamptz,
    deaths     integer     NOT NULL DEFAULT 0 CHECK (deaths >= 0),
    generation bigint      NOT NULL DEFAULT 0 CHECK (generation >= 0),
    version    bigint      NOT NULL DEFAULT -1 CHECK (version >= -1),
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, reaction, stream),
    CHECK ((holder IS NULL) = (until IS NULL)),
    CHECK (holder IS NULL OR NOT blocked)
) WITH (fillfactor = 70);
CREATE INDEX follow_ready ON {schema}.follow (shard, reaction, (deaths > 0), rank)
    WHERE holder IS NULL AND NOT blocked AND due > watermark;
CREATE INDEX follow_held ON {schema}.follow (shard, until) WHERE holder IS NOT NULL;
CREATE INDEX follow_blocked ON {schema}.follow (shard, workspace, reaction, stream) WHERE blocked;

-- The feed: a number for each event of a workspace, given after its commit.
CREATE TABLE {schema}.sequence (
    shard     smallint NOT NULL,
    workspace text     COLLATE "C" NOT NULL,
    last      bigint   NOT NULL CHECK (last >= 0),
    PRIMARY KEY (shard, workspace)
);
CREATE TABLE {schema}.feed (
    shard     smallint NOT NULL,
    workspace text     COLLATE "C" NOT NULL,
    position  bigint   NOT NULL CHECK (position > 0),
    stream    text     COLLATE "C" NOT NULL,
    version   bigint   NOT NULL CHECK (version >= 0),
    PRIMARY KEY (shard, workspace, position),
    UNIQUE (shard, workspace, stream, version)
);

-- What an aggregate was at a version, so that it need not be folded from the
-- beginning. It can be made again from the events.
CREATE TABLE {schema}.snapshot (
    shard     smallint    NOT NULL,
    workspace text        COLLATE "C" NOT NULL,
    stream    text        COLLATE "C" NOT NULL,
    kind      text        COLLATE "C" NOT NULL,
    version   bigint      NOT NULL CHECK (version >= 0),
    data      json        NOT NULL,
    at        timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, stream, kind)
);

-- The key of a subject, wrapped; NULL once the subject is forgotten.
CREATE TABLE {schema}.subject (
    shard        smallint    NOT NULL,
    workspace    text        COLLATE "C" NOT NULL,
    name         text        COLLATE "C" NOT NULL,
    key          bytea,
    created_at   timestamptz NOT NULL,
    forgotten_at timestamptz,
    PRIMARY KEY (shard, workspace, name),
    CHECK ((key IS NULL) = (forgotten_at IS NOT NULL))
);
