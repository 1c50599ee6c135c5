-- Restored backups.
-- min_reader: 10

-- The restores of this database from a backup, as "holdfast migrate --restored" recorded them. The generation of the database is
-- the largest one, and 0 before the first restore. It grows with the time of day, so that two restores of the same backup have
-- different ones.
CREATE TABLE {schema}.restore (
    generation  bigint      PRIMARY KEY CHECK (generation > 0),
    restored_at timestamptz NOT NULL
);

-- The positions of a feed that were skipped by a restore: those after last, up to next. A cursor among them is of an event that the
-- backup did not have.
CREATE TABLE {schema}.feed_gap (
    shard      smallint NOT NULL,
    workspace  text     COLLATE "C" NOT NULL,
    generation bigint   NOT NULL,
    last       bigint   NOT NULL,
    next       bigint   NOT NULL CHECK (next > last),
    PRIMARY KEY (shard, workspace, generation)
);
