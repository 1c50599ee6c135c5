-- Deleting by default.
-- min_reader: 10
-- An older node would wait forever for a run of which only the key remains.

-- Whether a server without settings deletes what has ended. A database that was used before deletes nothing until a setting
-- says so.
CREATE TABLE holdfast_retention (
    one        INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    by_default INTEGER NOT NULL CHECK (by_default IN (0, 1))
) STRICT, WITHOUT ROWID;
INSERT INTO holdfast_retention (one, by_default) SELECT 1, NOT EXISTS (SELECT 1 FROM holdfast_workspace);
