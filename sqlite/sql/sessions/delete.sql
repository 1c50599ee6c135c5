-- Deletes a session.
-- do
DELETE FROM holdfast_session AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.api_key = :key AND s.id = :id
RETURNING 1
-- else
SELECT 0
