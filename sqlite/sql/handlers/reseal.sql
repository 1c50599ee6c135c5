-- Replaces an encrypted value by the same one under another key. A value that was changed meanwhile is left as it is.
-- do
UPDATE holdfast_handler AS s
   SET secret = :resealed
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :name AND s.secret = :was
RETURNING 1
-- else
SELECT 0
