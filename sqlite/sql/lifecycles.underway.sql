-- The transactions that are under way: there is one writer, and who asks has come
-- after those before.
-- ?1 shard and ?2 workspace, not looked at, ?3 a JSON list, or NULL
-- do
SELECT '' WHERE ?1 IS NULL AND ?2 IS NULL AND ?3 IS NULL
