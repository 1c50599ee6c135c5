-- Takes a lifecycle's config away, if it is at the revision that is expected.
-- ?1 shard, ?2 workspace, ?3 command, ?4 lifecycle, ?5 expected
-- do
DELETE FROM holdfast_lifecycle AS l
 WHERE l.shard = ?1 AND l.workspace = ?2 AND l.name = ?4 AND l.revision = ?5
RETURNING 0
-- else
SELECT 0
