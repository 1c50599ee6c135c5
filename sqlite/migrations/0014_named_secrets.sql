-- Named secrets, and the headers of handlers and webhooks.
-- min_reader: 14
-- An older node would send calls without their headers, and the references of http steps as text.

-- The named secrets of a workspace. Their values are encrypted: the present one, and the former while messages are signed with
-- both.
CREATE TABLE holdfast_named_secret (
    shard        INTEGER NOT NULL,
    workspace    TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    version      INTEGER NOT NULL CHECK (version > 0),
    sealed       TEXT    NOT NULL,
    former       TEXT,
    former_until INTEGER,
    created_by   TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_by   TEXT    NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (shard, workspace, name)
) STRICT, WITHOUT ROWID;

-- The headers that a call gets, as a JSON object. Their values name secrets, and never have the value of one.
ALTER TABLE holdfast_handler ADD COLUMN headers TEXT NOT NULL DEFAULT '{}';
ALTER TABLE holdfast_webhook ADD COLUMN headers TEXT NOT NULL DEFAULT '{}';
