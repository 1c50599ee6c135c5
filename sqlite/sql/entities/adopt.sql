-- Leases an entity that is in a claim status without a claim, until it is reverted.
-- do
{include history/write}
SELECT :shard, :command, 0, :workspace, '$entity/' || :lifecycle || '/' || :entity, e.version + 1,
       'adopted',
       json_object('from', e.status, 'to', e.status, 'operation', :operation, 'epoch', e.epoch + 1), NULL, NULL, NULL, {now}
  {include entities/by_id}
   AND e.phase = 'free' AND e.status = :claim
-- then
UPDATE holdfast_entity AS e
   SET phase = 'held', operation = :operation, step = NULL, requester = NULL, revert = :revert, input = NULL, manual = 1,
       holder = :holder, epoch = e.epoch + 1, until = {now} + :lease, claimed_at = {now}, due_at = NULL, queue = NULL, stage = NULL,
       plan = json_object('operation', :operation, 'into', :claim),
       begun = 0, failures = 0, deaths = 0, error = NULL, outcome = NULL, version = e.version + 1, updated_at = {now}
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
RETURNING {include entities/returning_columns}
-- else
{include entities/select_current}
