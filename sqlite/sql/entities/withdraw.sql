-- Withdraws an operation that is due and not leased: if no begun effect may have happened, the entity is reverted; otherwise it stays in
-- the claim until a person decides. With :release, it also ends a lease, but only if no begun effect may have happened.
-- do
{include history/write}
SELECT :shard, :command, 0, :workspace, '$entity/' || :lifecycle || '/' || :entity, e.version + 1, iif(e.begun = 0, 'released', 'parked'),
       json_object('from', e.status, 'to', iif(e.begun = 0 AND e.status = :claim, e.revert, e.status), 'step', e.step, 'requester', e.requester,
                   'operation', e.operation, 'epoch', e.epoch + 1, 'outcome', iif(e.begun = 0, :outcome, NULL), 'effects', e.begun, 'message', :message,
                   'input', json(e.input)), :correlation, :causation, :actor, {now}
  {include entities/by_id}
   AND e.operation = :operation AND e.epoch = :epoch
   AND CASE WHEN :release THEN e.phase IN ('due', 'held') AND e.begun = 0 ELSE e.phase = 'due' END
-- then
UPDATE holdfast_entity AS e
   SET phase = iif(e.begun = 0, 'free', 'uncertain'), status = iif(e.begun = 0 AND e.status = :claim, e.revert, e.status),
       outcome = iif(e.begun = 0, :outcome, NULL), error = :message, lost = 0, holder = NULL, until = NULL, quiet = 0, epoch = e.epoch + 1, version = e.version + 1, updated_at = {now}
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
RETURNING {include entities/returning_columns}
-- else
{include entities/select_current}
