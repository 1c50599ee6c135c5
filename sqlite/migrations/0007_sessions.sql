-- Sessions of browsers, and when an API key was last used.
-- min_reader: 3

-- The sessions that browsers have through an API key. Only the SHA-256 of the secret is stored. A session is valid while
-- its key is.
CREATE TABLE holdfast_session (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    api_key    TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    hash       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, api_key, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_session_expires ON holdfast_session (shard, expires_at);

-- Written in the background, at most once a minute by each node; NULL if the key was never used.
ALTER TABLE holdfast_api_key ADD COLUMN last_used_at INTEGER;
