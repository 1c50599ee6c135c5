-- Copies the status of a row in a user's own table into the entity beside it, unless the
-- entity is claimed, and returns the entity.
-- do
INSERT INTO holdfast_entity AS e (shard, workspace, lifecycle, id, status, version, data, side, created_at, updated_at)
SELECT :shard, :workspace, :lifecycle, :entity, :status, 0, '{}', 1, t.now, t.now
  FROM (SELECT {now} AS now) AS t
 WHERE true
ON CONFLICT (shard, workspace, lifecycle, id) DO UPDATE
   SET status = excluded.status, version = e.version + 1, updated_at = excluded.updated_at
 WHERE e.phase = 'free' AND e.status <> excluded.status
RETURNING {include entities/returning_columns}
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$entity/' || :lifecycle || '/' || :entity, e.version, 'seen', json_object('to', e.status), NULL, NULL, NULL, e.updated_at
  {include entities/by_id}
-- else
SELECT {include entities/result_columns coalesce(e.phase, 'free')}
  {include entities/by_id}
