-- Replaces a scope's state if it is at the expected version. An expired scope counts as missing.
-- do
INSERT INTO holdfast_scope AS s
    (shard, workspace, kind, id, version, state, created_at, updated_at, expires_at, born)
SELECT :shard, :workspace, :kind, :scope, t.floor, :state, t.now, t.now, t.now + :ttl, t.floor
  FROM (SELECT {now} AS now,
               {include scopes/floor} AS floor) AS t
 WHERE :want IS NULL
    OR :want = -1
    OR EXISTS (SELECT 1 FROM holdfast_scope AS x
                WHERE x.shard = :shard AND x.workspace = :workspace AND x.kind = :kind AND x.id = :scope)
ON CONFLICT (shard, workspace, kind, id) DO UPDATE
   SET version = s.version + 1, state = excluded.state, updated_at = excluded.updated_at, expires_at = excluded.expires_at
 WHERE :want IS NULL
    OR (:want = -1 AND (s.state IS NULL OR s.expires_at <= excluded.updated_at))
    OR (:want = s.version AND s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > excluded.updated_at))
RETURNING version, state
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$scope/' || :kind || '/' || :scope, s.version, 'put', :note, :correlation, :causation, :actor, s.updated_at
  FROM holdfast_scope AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope
-- else
SELECT coalesce(s.version, -1), coalesce(s.state, 'null')
  FROM (SELECT {now} AS now) AS t LEFT JOIN holdfast_scope AS s
    ON s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope AND s.state IS NOT NULL
   AND (s.expires_at IS NULL OR s.expires_at > t.now)
