-- Moves an entity from one of the named statuses to another, if it is in that status and at
-- the expected version, if there is one. The event is written first, because it records the
-- status that the update overwrites.
-- do
{include history/write}
SELECT :shard, :command, 0, :workspace, '$entity/' || :lifecycle || '/' || :entity, e.version + 1, :event,
       json_object('from', e.status, 'to', :target, 'note', json(:note)), :correlation, :causation, :actor, {now}
  {include entities/by_id}
   AND CASE WHEN :one IS NULL THEN e.status IN (SELECT f.value FROM json_each(:froms) AS f) ELSE e.status = :one END
   AND (:want IS NULL OR e.version = :want) AND e.phase = 'free'
-- then
UPDATE holdfast_entity AS e
   SET status = :target, version = e.version + 1, data = coalesce(:data, e.data), updated_at = {now}
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
   AND CASE WHEN :one IS NULL THEN e.status IN (SELECT f.value FROM json_each(:froms) AS f) ELSE e.status = :one END
RETURNING status, version, data, created_at, updated_at
-- else
SELECT coalesce(e.status, ''), coalesce(e.version, -1), coalesce(e.data, 'null'),
       coalesce(e.created_at, 0), coalesce(e.updated_at, 0)
  FROM (SELECT 1) LEFT JOIN holdfast_entity AS e
    ON e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
