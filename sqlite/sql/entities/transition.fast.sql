-- Moves an entity from a single expected status (:one; NULL if there are several), or
-- does nothing and returns nothing. The update returns the version and the time of the
-- event (:did2, :did5).
-- do
UPDATE holdfast_entity AS e
   SET status = :target, version = e.version + 1, data = coalesce(:data, e.data), updated_at = {now}
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity AND e.status = :one AND e.phase = 'free'
   AND (:want IS NULL OR e.version = :want)
RETURNING status, version, data, created_at, updated_at
-- then
{include history/write}
VALUES (:shard, :command, 0, :workspace, '$entity/' || :lifecycle || '/' || :entity, :did2, :event, json_object('from', :one, 'to', :target, 'note', json(:note)), :correlation, :causation, :actor, :did5)
