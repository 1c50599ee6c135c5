-- Batches of administrative actions.
-- min_reader: 3

-- What a bulk does to its members, which are the items of its batch: action, filter and actor. NULL for all other batches.
ALTER TABLE {schema}.batch ADD COLUMN about json;
