-- There is one writer, so a mark is noted where it belongs when it is made, and
-- there is nothing to gather.
-- ?1 shard, ?2 workspace ('' for all), ?3 reactions as a JSON list, ?4 limit of each
-- do
SELECT 0, '', '', '', 0, 0 WHERE ?1 IS NULL AND ?2 IS NULL AND ?3 IS NULL AND ?4 IS NULL
