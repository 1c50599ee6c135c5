-- Turns an expired scope into a tombstone, if it is still at the version that was seen.
-- do
UPDATE holdfast_scope AS s
   SET version = s.version + 1, state = NULL, updated_at = {now}, expires_at = {now} + 86400000
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope AND s.version = :version
   AND s.state IS NOT NULL AND s.expires_at <= {now}
RETURNING version
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, at)
SELECT :shard, :command, 0, :workspace, '$scope/' || :kind || '/' || :scope, s.version, 'expired', '{}', s.updated_at
  FROM holdfast_scope AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope
-- else
SELECT -1
