-- Restrictions of API keys.
-- min_reader: 13
-- An older node would not know the restrictions, and allow a restricted key all that its role allows.

-- What a key may do less than its role: route groups, lifecycles, and networks of the caller.
ALTER TABLE holdfast_api_key ADD COLUMN restrictions TEXT NOT NULL DEFAULT '';
UPDATE holdfast_api_key SET restrictions = '{}';

-- An older node that still runs would create a key without restrictions, also as the successor of a key that has them: its statement,
-- which does not name the column, fails.
CREATE TRIGGER holdfast_api_key_restrictions BEFORE INSERT ON holdfast_api_key WHEN NEW.restrictions = ''
BEGIN SELECT RAISE(ABORT, 'this version does not know the restrictions of API keys: upgrade this node'); END;
