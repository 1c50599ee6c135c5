-- Deleting by default.
-- min_reader: 10
-- An older node would wait forever for a run of which only the key remains.

-- Whether a server without settings deletes old histories, decided when the first one opens the database: not if it was in use
-- before.
CREATE TABLE holdfast_retention (
    one        INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    by_default INTEGER NOT NULL CHECK (by_default IN (0, 1))
) STRICT, WITHOUT ROWID;
