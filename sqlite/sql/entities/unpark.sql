-- Ends the uncertain phase of an operation without effects of unknown outcome: it is due again, or ends with the given target.
-- do
{include history/write}
SELECT :shard, :command, 0, :workspace, '$entity/' || :lifecycle || '/' || :entity, e.version + 1,
       CASE WHEN :how = 'resume' AND e.begun > 0 THEN 'resumed' ELSE :event END,
       json_object('from', e.status, 'to', CASE WHEN :how = 'success' THEN :target WHEN :how = 'back' OR e.begun = 0 THEN coalesce(:target, e.revert) ELSE e.status END,
                   'step', e.step, 'requester', e.requester, 'operation', e.operation, 'epoch', e.epoch + 1,
                   'outcome', CASE WHEN :how = 'resume' AND e.begun > 0 THEN NULL ELSE :outcome END, 'effects', e.begun,
                   'input', json(e.input), 'note', json(:note)), :correlation, :causation, :actor, {now}
  {include entities/by_id}
   AND e.operation = :operation AND e.epoch = :epoch AND e.phase = 'uncertain'
   AND NOT EXISTS (SELECT 1 FROM holdfast_effect AS x WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :operation AND x.state = 'begun')
-- then
UPDATE holdfast_entity AS e
   SET phase = CASE WHEN :how = 'resume' AND e.begun > 0 THEN 'due' ELSE 'free' END,
       status = CASE WHEN :how = 'success' THEN :target WHEN :how = 'back' OR e.begun = 0 THEN coalesce(:target, e.revert) ELSE e.status END,
       outcome = CASE WHEN :how = 'resume' AND e.begun > 0 THEN NULL ELSE :outcome END,
       failures = 0, deaths = 0, due_at = {now}, version = e.version + 1, epoch = e.epoch + 1, updated_at = {now}
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
RETURNING {include entities/returning_columns}
-- else
{include entities/select_current}
