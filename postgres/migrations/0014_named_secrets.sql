-- Named secrets, and the headers of handlers and webhooks.
-- min_reader: 14
-- An older node would send calls without their headers, and the references of http steps as text.

-- The named secrets of a workspace. Their values are encrypted: the present one, and the former while messages are signed with
-- both.
CREATE TABLE {schema}.named_secret (
    shard        smallint    NOT NULL,
    workspace    text        COLLATE "C" NOT NULL,
    name         text        COLLATE "C" NOT NULL,
    version      bigint      NOT NULL CHECK (version > 0),
    sealed       text        NOT NULL,
    former       text,
    former_until timestamptz,
    created_by   text        NOT NULL,
    created_at   timestamptz NOT NULL,
    updated_by   text        NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, name)
);

-- The headers that a call gets, as a JSON object. Their values name secrets, and never have the value of one.
ALTER TABLE {schema}.handler ADD COLUMN headers text NOT NULL DEFAULT '{}';
ALTER TABLE {schema}.webhook ADD COLUMN headers text NOT NULL DEFAULT '{}';
