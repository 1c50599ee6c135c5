-- Creates an entity, with its first event, unless there is one.
-- ?1 shard, ?2 workspace, ?3 command, ?4 lifecycle, ?5 entity, ?6 status,
-- ?7 data, ?8 correlation, ?9 causation, ?10 actor
-- do
INSERT INTO holdfast_entity
    (shard, workspace, lifecycle, id, status, version, data, created_at, updated_at)
SELECT ?1, ?2, ?4, ?5, ?6, 0, ?7, t.now, t.now
  FROM (SELECT {now} AS now) AS t
 WHERE true
ON CONFLICT (shard, workspace, lifecycle, id) DO NOTHING
RETURNING status, version, data, created_at, updated_at
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$entity/' || ?4 || '/' || ?5, e.version, 'created',
       json_object('to', e.status), ?8, ?9, ?10, e.created_at
  FROM holdfast_entity AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
-- else
SELECT e.status, e.version, e.data, e.created_at, e.updated_at
  FROM holdfast_entity AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
