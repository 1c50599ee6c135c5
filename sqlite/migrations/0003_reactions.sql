-- Reactions: named code that follows streams; the feed over all streams;
-- closing the books; snapshots; and the keys of those whose data is encrypted.
-- min_reader: 3

-- Versions below first are gone. A stream that is being closed is held; a closed
-- one takes no more events.
ALTER TABLE holdfast_stream ADD COLUMN first INTEGER NOT NULL DEFAULT 0 CHECK (first >= 0);
ALTER TABLE holdfast_stream ADD COLUMN state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closing', 'closed'));
ALTER TABLE holdfast_stream ADD COLUMN holder TEXT;
ALTER TABLE holdfast_stream ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0);
ALTER TABLE holdfast_stream ADD COLUMN until INTEGER;
CREATE INDEX holdfast_stream_held ON holdfast_stream (shard, until) WHERE holder IS NOT NULL;

-- Whose key the data is encrypted under, if it is.
ALTER TABLE holdfast_event ADD COLUMN subject TEXT;

-- A command that writes events knows which reactions there are by this number,
-- and is refused where it has changed.
CREATE TABLE holdfast_registry (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    revision  INTEGER NOT NULL CHECK (revision > 0),
    PRIMARY KEY (shard, workspace)
) STRICT, WITHOUT ROWID;

-- What each reaction follows. base is where the epochs of its holds begin, so
-- that one made again under the same name never meets an old holder.
CREATE TABLE holdfast_reaction (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    source     TEXT    NOT NULL CHECK (source IN ('event', 'history')),
    events     TEXT    NOT NULL,
    streams    TEXT    NOT NULL,
    options    TEXT    NOT NULL,
    max_deaths INTEGER NOT NULL CHECK (max_deaths > 0),
    priority   INTEGER NOT NULL,
    base       INTEGER NOT NULL CHECK (base >= 0),
    state      TEXT    NOT NULL CHECK (state IN ('waiting', 'live', 'removed')),
    waits      TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_reaction_unfinished ON holdfast_reaction (shard, workspace, name) WHERE state <> 'live';

-- Where a reaction stands on a stream: the last version handled, the last one
-- that is known to concern it, and the hold of whoever works on it. rank is the
-- time it is due less what its priority is worth. failing is the version that
-- failed last. generation counts the resets; version is that of its history.
CREATE TABLE holdfast_follow (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    reaction   TEXT    NOT NULL,
    stream     TEXT    NOT NULL,
    watermark  INTEGER NOT NULL CHECK (watermark >= -1),
    due        INTEGER NOT NULL CHECK (due >= -1),
    due_at     INTEGER NOT NULL,
    rank       INTEGER NOT NULL,
    failing    INTEGER,
    failures   INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    blocked    INTEGER NOT NULL DEFAULT 0 CHECK (blocked IN (0, 1)),
    error      TEXT,
    holder     TEXT,
    epoch      INTEGER NOT NULL CHECK (epoch >= 0),
    until      INTEGER,
    deaths     INTEGER NOT NULL DEFAULT 0 CHECK (deaths >= 0),
    generation INTEGER NOT NULL DEFAULT 0 CHECK (generation >= 0),
    version    INTEGER NOT NULL DEFAULT -1 CHECK (version >= -1),
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, reaction, stream),
    CHECK ((holder IS NULL) = (until IS NULL)),
    CHECK (holder IS NULL OR blocked = 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_follow_ready ON holdfast_follow (shard, reaction, deaths > 0, rank)
    WHERE holder IS NULL AND blocked = 0 AND due > watermark;
CREATE INDEX holdfast_follow_held ON holdfast_follow (shard, until) WHERE holder IS NOT NULL;
CREATE INDEX holdfast_follow_blocked ON holdfast_follow (shard, workspace, reaction, stream) WHERE blocked = 1;

-- The feed: a number for each event of a workspace, given after its commit.
CREATE TABLE holdfast_sequence (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    last      INTEGER NOT NULL CHECK (last >= 0),
    PRIMARY KEY (shard, workspace)
) STRICT, WITHOUT ROWID;
CREATE TABLE holdfast_feed (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    position  INTEGER NOT NULL CHECK (position > 0),
    stream    TEXT    NOT NULL,
    version   INTEGER NOT NULL CHECK (version >= 0),
    PRIMARY KEY (shard, workspace, position),
    UNIQUE (shard, workspace, stream, version)
) STRICT, WITHOUT ROWID;

-- What an aggregate was at a version, so that it need not be folded from the
-- beginning. It can be made again from the events.
CREATE TABLE holdfast_snapshot (
    shard     INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    stream    TEXT    NOT NULL,
    kind      TEXT    NOT NULL,
    version   INTEGER NOT NULL CHECK (version >= 0),
    data      TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, stream, kind)
) STRICT, WITHOUT ROWID;

-- The key of a subject, wrapped; NULL once the subject is forgotten.
CREATE TABLE holdfast_subject (
    shard        INTEGER NOT NULL,
    workspace    TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    key          BLOB,
    created_at   INTEGER NOT NULL,
    forgotten_at INTEGER,
    PRIMARY KEY (shard, workspace, name),
    CHECK ((key IS NULL) = (forgotten_at IS NOT NULL))
) STRICT, WITHOUT ROWID;
