-- What was handed out is told from what was made up.
-- min_reader: 19

-- The ids of tasks that are handed out are signed with this.
CREATE TABLE {schema}.secret (
    one   smallint PRIMARY KEY CHECK (one = 1),
    value bytea    NOT NULL
);
INSERT INTO {schema}.secret (one, value)
SELECT 1, pg_catalog.uuid_send(pg_catalog.gen_random_uuid()) || pg_catalog.uuid_send(pg_catalog.gen_random_uuid());

-- handlers are those that a key may do the tasks of; none are all.
ALTER TABLE {schema}.api_key ADD COLUMN handlers json NOT NULL DEFAULT '[]';
