-- An acknowledgement goes no further than what was delivered.
-- min_reader: 12

-- delivered is the last version that was delivered under the lease of the epoch delivered_epoch. Of a lease with
-- another epoch it is not known: a program that does not know these columns took it.
ALTER TABLE {schema}.follow
    ADD COLUMN delivered bigint NOT NULL DEFAULT -1,
    ADD COLUMN delivered_epoch bigint NOT NULL DEFAULT 0;
