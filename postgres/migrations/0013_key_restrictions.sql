-- Restrictions of API keys.
-- min_reader: 13
-- An older node would not know the restrictions, and allow a restricted key all that its role allows.

-- What a key may do less than its role: route groups, lifecycles, and networks of the caller.
ALTER TABLE {schema}.api_key ADD COLUMN restrictions json NOT NULL DEFAULT '{}';

-- An older node that still runs would create a key without restrictions, also as the successor of a key that has them: its statement,
-- which does not name the column, fails.
ALTER TABLE {schema}.api_key ALTER COLUMN restrictions DROP DEFAULT;
