-- Moves an entity from one of the named statuses to another, if it is there
-- and, where a version is named, at that version. The event is written first:
-- it tells the status that the update is about to overwrite.
-- ?1 shard, ?2 workspace, ?3 command, ?4 lifecycle, ?5 entity, ?6 from (NULL
-- where there are several), ?7 froms as a JSON list, ?8 to, ?9 want,
-- ?10 data, ?11 event, ?12 note, ?13 correlation, ?14 causation, ?15 actor
-- do
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$entity/' || ?4 || '/' || ?5, e.version + 1, ?11,
       json_object('from', e.status, 'to', ?8, 'note', json(?12)), ?13, ?14, ?15, {now}
  FROM holdfast_entity AS e
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
   AND CASE WHEN ?6 IS NULL THEN e.status IN (SELECT f.value FROM json_each(?7) AS f) ELSE e.status = ?6 END
   AND (?9 IS NULL OR e.version = ?9) AND e.phase = 'free'
-- then
UPDATE holdfast_entity AS e
   SET status = ?8, version = e.version + 1, data = coalesce(?10, e.data), updated_at = {now}
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
   AND CASE WHEN ?6 IS NULL THEN e.status IN (SELECT f.value FROM json_each(?7) AS f) ELSE e.status = ?6 END
RETURNING status, version, data, created_at, updated_at
-- else
SELECT coalesce(e.status, ''), coalesce(e.version, -1), coalesce(e.data, 'null'),
       coalesce(e.created_at, 0), coalesce(e.updated_at, 0)
  FROM (SELECT 1) LEFT JOIN holdfast_entity AS e
    ON e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?4 AND e.id = ?5
