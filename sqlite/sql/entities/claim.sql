-- Claims a free entity: its status selects the claim.
-- do
{include history/write}
SELECT :shard, :command, 0, :workspace, '$entity/' || :lifecycle || '/' || :entity, e.version + 1,
       'claimed',
       json_object('from', e.status, 'to', (SELECT c.value ->> 0 FROM json_each(:choices) AS c WHERE c.key = e.status), 'step', :step, 'requester', :requester,
                   'operation', :operation, 'epoch', e.epoch + 1, 'holder', :holder), :correlation, :causation, :actor, {now}
  {include entities/by_id}
   AND e.phase = 'free' AND EXISTS (SELECT 1 FROM json_each(:choices) AS c WHERE c.key = e.status) AND (:want IS NULL OR e.version = :want)
-- then
UPDATE holdfast_entity AS e
   SET status = (SELECT c.value ->> 0 FROM json_each(:choices) AS c WHERE c.key = e.status),
       revert = (SELECT c.value ->> 1 FROM json_each(:choices) AS c WHERE c.key = e.status),
       plan = (SELECT c.value -> 2 FROM json_each(:choices) AS c WHERE c.key = e.status), version = e.version + 1,
       phase = 'held', operation = :operation, step = :step, requester = :requester, input = :input, manual = :manual, holder = :holder, epoch = e.epoch + 1,
       until = {now} + :lease, claimed_at = {now}, due_at = NULL, queue = NULL, stage = NULL, begun = :begun, failures = 0, deaths = 0, error = NULL, outcome = NULL,
       updated_at = {now}
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
RETURNING {include entities/returning_columns}
-- else
SELECT {include entities/result_columns CASE WHEN e.until <= {now} THEN 'expired' ELSE coalesce(e.phase, 'free') END}
  FROM (SELECT 1) LEFT JOIN holdfast_entity AS e
    ON e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
