-- What was handed out is told from what was made up.
-- min_reader: 18

-- The ids of tasks that are handed out are signed with this.
CREATE TABLE holdfast_secret (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    value BLOB NOT NULL
);
INSERT INTO holdfast_secret (one, value) VALUES (1, randomblob(32));

-- handlers are those that a key may do the tasks of; none are all.
ALTER TABLE holdfast_api_key ADD COLUMN handlers TEXT NOT NULL DEFAULT '[]';
