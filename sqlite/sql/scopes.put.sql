-- Replaces a scope's state if it is at the expected version.
-- ?1 shard, ?2 workspace, ?3 command, ?4 kind, ?5 scope, ?6 want (NULL any,
-- -1 none), ?7 state, ?8 correlation, ?9 causation, ?10 actor
-- do
INSERT INTO holdfast_scope AS s
    (shard, workspace, kind, id, version, state, created_at, updated_at)
SELECT ?1, ?2, ?4, ?5, 0, ?7, t.now, t.now
  FROM (SELECT {now} AS now) AS t
 WHERE ?6 IS NULL
    OR ?6 = -1
    OR EXISTS (SELECT 1 FROM holdfast_scope AS x
                WHERE x.shard = ?1 AND x.workspace = ?2 AND x.kind = ?4 AND x.id = ?5)
ON CONFLICT (shard, workspace, kind, id) DO UPDATE
   SET version = s.version + 1, state = excluded.state, updated_at = excluded.updated_at
 WHERE ?6 IS NULL
    OR (?6 = -1 AND s.state IS NULL)
    OR (?6 = s.version AND s.state IS NOT NULL)
RETURNING version, state
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$scope/' || ?4 || '/' || ?5, s.version, 'put', '{}', ?8, ?9, ?10, s.updated_at
  FROM holdfast_scope AS s
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.kind = ?4 AND s.id = ?5
-- else
SELECT coalesce(s.version, -1), coalesce(s.state, 'null')
  FROM (SELECT 1) LEFT JOIN holdfast_scope AS s
    ON s.shard = ?1 AND s.workspace = ?2 AND s.kind = ?4 AND s.id = ?5 AND s.state IS NOT NULL
