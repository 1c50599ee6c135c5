-- Deletes a scope if it is at the expected version. The row stays as a tombstone for a day,
-- so that no version is reused.
-- do
UPDATE holdfast_scope AS s
   SET version = s.version + 1, state = NULL, updated_at = {now}, expires_at = {now} + 86400000
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope
   AND s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > {now})
   AND (:want IS NULL OR :want = -2 OR s.version = :want)
RETURNING version, 'null'
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$scope/' || :kind || '/' || :scope, s.version, 'deleted', '{}', :correlation, :causation, :actor, s.updated_at
  FROM holdfast_scope AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope
-- else
SELECT coalesce(s.version, -1), coalesce(s.state, 'null')
  FROM (SELECT {now} AS now) AS t LEFT JOIN holdfast_scope AS s
    ON s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope AND s.state IS NOT NULL
   AND (s.expires_at IS NULL OR s.expires_at > t.now)
