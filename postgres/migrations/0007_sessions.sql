-- Sessions of browsers, and when an API key was last used.
-- min_reader: 3

-- The sessions that browsers have through an API key. Only the SHA-256 of the secret is stored. A session is valid while
-- its key is.
CREATE TABLE {schema}.session (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    api_key    text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    hash       text        COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, api_key, id)
);
CREATE INDEX session_expires ON {schema}.session ((shard + 0), expires_at);

-- Written in the background, at most once a minute by each node; NULL if the key was never used.
ALTER TABLE {schema}.api_key ADD COLUMN last_used_at timestamptz;
