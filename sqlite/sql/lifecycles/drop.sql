-- Takes a lifecycle's config away, if it is at the revision that is expected.
-- do
DELETE FROM holdfast_lifecycle AS l
 WHERE l.shard = :shard AND l.workspace = :workspace AND l.name = :name AND l.revision = :expected
RETURNING 0
-- else
SELECT 0
