-- The transactions that are under way: there is one writer, and who asks has come
-- after those before.
SELECT '' WHERE :shard IS NULL AND :workspace IS NULL AND :list IS NULL
