-- A clock that is set back: meets is the machine's time in milliseconds at which the database's time, which runs ahead
-- of it at half its speed, meets it again.
-- min_reader: 13

ALTER TABLE holdfast_clock ADD COLUMN meets INTEGER NOT NULL DEFAULT 0;
