-- Deletes a scope if it is at the expected version. The row stays as a tombstone for a
-- day, so that a version is never used again.
-- ?1 shard, ?2 workspace, ?3 command, ?4 kind, ?5 scope, ?6 want (NULL any, -2 some),
-- ?7 correlation, ?8 causation, ?9 actor
-- do
UPDATE holdfast_scope AS s
   SET version = s.version + 1, state = NULL, updated_at = {now}, expires_at = {now} + 86400000
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.kind = ?4 AND s.id = ?5
   AND s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > {now})
   AND (?6 IS NULL OR ?6 = -2 OR s.version = ?6)
RETURNING version, 'null'
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$scope/' || ?4 || '/' || ?5, s.version, 'deleted', '{}', ?7, ?8, ?9, s.updated_at
  FROM holdfast_scope AS s
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.kind = ?4 AND s.id = ?5
-- else
SELECT coalesce(s.version, -1), coalesce(s.state, 'null')
  FROM (SELECT {now} AS now) AS t LEFT JOIN holdfast_scope AS s
    ON s.shard = ?1 AND s.workspace = ?2 AND s.kind = ?4 AND s.id = ?5 AND s.state IS NOT NULL
   AND (s.expires_at IS NULL OR s.expires_at > t.now)
