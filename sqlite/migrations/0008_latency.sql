-- How long requests took and how late work was, by the minute.
-- min_reader: 3

-- The largest values that the node reported in the minute, in ms; NULL if it reported none. latency is the duration within which
-- 95 % of its HTTP requests were served, lag the age of the oldest due work of the database.
ALTER TABLE holdfast_node_minute ADD COLUMN latency INTEGER;
ALTER TABLE holdfast_node_minute ADD COLUMN lag INTEGER;
