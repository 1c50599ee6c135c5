-- Deletes a handler.
-- do
DELETE FROM holdfast_handler AS h
 WHERE h.shard = :shard AND h.workspace = :workspace AND h.name = :name
RETURNING 1
-- else
SELECT 0
