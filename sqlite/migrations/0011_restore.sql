-- Restored backups.
-- min_reader: 10

-- The restores of this database from a backup, as "holdfast migrate --restored" recorded them. The generation of the database is
-- the largest one, and 0 before the first restore. It grows with the time of day, so that two restores of the same backup have
-- different ones.
CREATE TABLE holdfast_restore (
    generation  INTEGER NOT NULL PRIMARY KEY CHECK (generation > 0),
    restored_at INTEGER NOT NULL
) STRICT;

-- The positions of a feed that were skipped by a restore: those after last, up to next. A cursor among them is of an event that the
-- backup did not have.
CREATE TABLE holdfast_feed_gap (
    shard      INTEGER NOT NULL,
    workspace  TEXT    NOT NULL,
    generation INTEGER NOT NULL,
    last       INTEGER NOT NULL,
    next       INTEGER NOT NULL CHECK (next > last),
    PRIMARY KEY (shard, workspace, generation)
) STRICT, WITHOUT ROWID;
