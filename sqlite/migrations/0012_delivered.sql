-- An acknowledgement goes no further than what was delivered.
-- min_reader: 11

-- delivered is the last version that was delivered under the lease of the epoch delivered_epoch. Of a lease with
-- another epoch it is not known: a program that does not know these columns took it.
ALTER TABLE holdfast_follow ADD COLUMN delivered INTEGER NOT NULL DEFAULT -1 CHECK (delivered >= -1);
ALTER TABLE holdfast_follow ADD COLUMN delivered_epoch INTEGER NOT NULL DEFAULT 0 CHECK (delivered_epoch >= 0);
