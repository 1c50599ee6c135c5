-- A key that succeeds another by rotation is known as the same.
-- min_reader: 22

-- origin is the first of the keys that a key comes from by rotations; NULL for one that was made anew.
ALTER TABLE {schema}.api_key ADD COLUMN origin text;
