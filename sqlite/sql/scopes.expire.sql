-- Makes a tombstone of a scope that has ended, if it is still at the version that was seen.
-- ?1 shard, ?2 workspace, ?3 command, ?4 kind, ?5 scope, ?6 version
-- do
UPDATE holdfast_scope AS s
   SET version = s.version + 1, state = NULL, updated_at = {now}, expires_at = {now} + 86400000
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.kind = ?4 AND s.id = ?5 AND s.version = ?6
   AND s.state IS NOT NULL AND s.expires_at <= {now}
RETURNING version
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, at)
SELECT ?1, ?3, 0, ?2, '$scope/' || ?4 || '/' || ?5, s.version, 'expired', '{}', s.updated_at
  FROM holdfast_scope AS s
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.kind = ?4 AND s.id = ?5
-- else
SELECT -1
