-- Deletes a secret at a version.
-- do
DELETE FROM holdfast_named_secret AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :name AND s.version = :version
RETURNING 1
-- else
SELECT 0
