-- Replaces a scope's state if it is at the expected version. One that has ended is none.
-- ?1 shard, ?2 workspace, ?3 command, ?4 kind, ?5 scope, ?6 want (NULL any,
-- -1 none), ?7 state, ?8 ttl in ms, ?9 correlation, ?10 causation, ?11 actor
-- do
INSERT INTO holdfast_scope AS s
    (shard, workspace, kind, id, version, state, created_at, updated_at, expires_at, born)
SELECT ?1, ?2, ?4, ?5, t.floor, ?7, t.now, t.now, t.now + ?8, t.floor
  FROM (SELECT {now} AS now,
               coalesce((SELECT f.version FROM holdfast_scope_floor AS f
                          WHERE f.shard = ?1 AND f.workspace = ?2 AND f.kind = ?4), 0) AS floor) AS t
 WHERE ?6 IS NULL
    OR ?6 = -1
    OR EXISTS (SELECT 1 FROM holdfast_scope AS x
                WHERE x.shard = ?1 AND x.workspace = ?2 AND x.kind = ?4 AND x.id = ?5)
ON CONFLICT (shard, workspace, kind, id) DO UPDATE
   SET version = s.version + 1, state = excluded.state, updated_at = excluded.updated_at, expires_at = excluded.expires_at
 WHERE ?6 IS NULL
    OR (?6 = -1 AND (s.state IS NULL OR s.expires_at <= excluded.updated_at))
    OR (?6 = s.version AND s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > excluded.updated_at))
RETURNING version, state
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$scope/' || ?4 || '/' || ?5, s.version, 'put', '{}', ?9, ?10, ?11, s.updated_at
  FROM holdfast_scope AS s
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.kind = ?4 AND s.id = ?5
-- else
SELECT coalesce(s.version, -1), coalesce(s.state, 'null')
  FROM (SELECT {now} AS now) AS t LEFT JOIN holdfast_scope AS s
    ON s.shard = ?1 AND s.workspace = ?2 AND s.kind = ?4 AND s.id = ?5 AND s.state IS NOT NULL
   AND (s.expires_at IS NULL OR s.expires_at > t.now)
