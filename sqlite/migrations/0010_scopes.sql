-- Scopes that end by themselves.
-- min_reader: 10

-- expires_at is when a scope ends, or when a tombstone may go. born is the version that
-- the row began with: a name whose tombstone is gone begins above every version that was
-- ever used in its kind.
ALTER TABLE holdfast_scope ADD COLUMN expires_at INTEGER;
ALTER TABLE holdfast_scope ADD COLUMN born INTEGER NOT NULL DEFAULT 0;
UPDATE holdfast_scope SET expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + 86400000 WHERE state IS NULL;
CREATE INDEX holdfast_scope_expires ON holdfast_scope (shard, expires_at) WHERE expires_at IS NOT NULL;

-- The version that the next new scope of a kind begins with.
CREATE TABLE holdfast_scope_floor (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    version    INTEGER NOT NULL CHECK (version >= 0),
    PRIMARY KEY (shard, workspace, kind)
) STRICT, WITHOUT ROWID;
