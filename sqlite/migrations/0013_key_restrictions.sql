-- Restrictions of API keys.
-- min_reader: 13
-- An older node would not know the restrictions, and allow a restricted key all that its role allows.

-- What a key may do less than its role: route groups, lifecycles, and networks of the caller.
ALTER TABLE holdfast_api_key ADD COLUMN restrictions TEXT NOT NULL DEFAULT '{}';
