-- An operation keeps what it was taken with, and a config says which of its statuses are claims.
-- min_reader: 15

-- plan is the step as the config had it when the operation was taken: operation, into, success, failed, after, action,
-- validation, timeout in ms. One with another operation is of an earlier one: a program that does not know the column took
-- this one.
ALTER TABLE {schema}.entity ADD COLUMN plan jsonb;

-- claims are the statuses that only a claim leads into. While a change is looked into, those of both configs. NULL is of a
-- program that does not know the column.
ALTER TABLE {schema}.lifecycle ADD COLUMN claims json;
