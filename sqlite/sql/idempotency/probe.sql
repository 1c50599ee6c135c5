-- Is applied if the request is unknown.
-- unused: command
-- do
SELECT 0
 WHERE NOT EXISTS (SELECT 1 FROM holdfast_request AS r WHERE r.shard = :shard AND r.workspace = :workspace AND r.key = :key)
-- else
SELECT 0
