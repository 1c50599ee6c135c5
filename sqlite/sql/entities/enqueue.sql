-- Hands a leased operation over to a queue. Nothing was done yet that cannot be repeated.
-- do
{include history/write}
SELECT :shard, :command, 0, :workspace, '$entity/' || :lifecycle || '/' || :entity, e.version + 1, 'queued',
       json_object('from', e.status, 'to', e.status, 'step', e.step, 'requester', e.requester, 'operation', e.operation, 'epoch', e.epoch, 'stage', :stage),
       NULL, NULL, NULL, {now}
  {include entities/by_id}
   AND e.operation = :operation AND e.epoch = :epoch AND e.phase = 'held' AND e.until > {now} AND e.status = :claim
-- then
UPDATE holdfast_entity AS e
   SET phase = 'due', queue = :queue, stage = :stage, holder = NULL, until = NULL, quiet = 0, lost = 0, due_at = {now}, version = e.version + 1, updated_at = {now}
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
RETURNING {include entities/returning_columns}
-- else
{include entities/select_current}
