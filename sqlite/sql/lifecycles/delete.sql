-- Deletes a lifecycle's config, if it is at the expected revision.
-- do
DELETE FROM holdfast_lifecycle AS l
 WHERE l.shard = :shard AND l.workspace = :workspace AND l.name = :name AND l.revision = :expected
RETURNING 0
-- else
SELECT 0
