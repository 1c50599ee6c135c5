-- Creates an entity that does not exist, with its first event.
-- do
INSERT INTO holdfast_entity
    (shard, workspace, lifecycle, id, status, version, data, created_at, updated_at)
SELECT :shard, :workspace, :lifecycle, :entity, :status, 0, :data, t.now, t.now
  FROM (SELECT {now} AS now) AS t
 WHERE true
ON CONFLICT (shard, workspace, lifecycle, id) DO NOTHING
RETURNING status, version, data, created_at, updated_at
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$entity/' || :lifecycle || '/' || :entity, 0, 'created',
       json_object('to', :status), :correlation, :causation, :actor, :did4
-- else
SELECT e.status, e.version, e.data, e.created_at, e.updated_at
  {include entities/by_id}
