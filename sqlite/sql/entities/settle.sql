-- Ends a lease that has not expired, depending on the effects begun under it.
-- do
{include history/write}
SELECT :shard, :command, 0, :workspace, '$entity/' || :lifecycle || '/' || :entity, e.version + 1,
       CASE e.becomes WHEN 'free' THEN :event WHEN 'due' THEN 'interrupted' ELSE 'parked' END,
       json_object('from', e.status, 'to', CASE WHEN e.becomes = 'free' AND e.status = :claim THEN coalesce(:target, e.revert) ELSE e.status END, 'step', e.step,
                   'requester', e.requester, 'operation', e.operation, 'epoch', e.epoch,
                   'outcome', CASE WHEN e.becomes = 'free' THEN :outcome END, 'effects', e.begun, 'message', :message,
                   'input', json(e.input), 'note', json(:note)), :correlation, :causation, :actor, {now}
  FROM (SELECT e.*,
               CASE WHEN :how = 'success' THEN CASE WHEN (e.begun = 0 OR e.begun <= (SELECT count(*) FROM holdfast_effect AS x
                    WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :operation
                      AND (x.state = 'done' OR (x.state = 'begun' AND EXISTS (SELECT 1 FROM json_each(:results) AS r
                                                                              WHERE r.value ->> 'n' = x.name AND r.value ->> 'o' = x.ordinal))))) THEN 'free' ELSE 'uncertain' END
                    WHEN e.begun = 0 THEN 'free'
                    WHEN :how = 'park' OR e.manual OR (e.failures + 1 > :retries AND :outcome <> 'cancelled') THEN 'uncertain'
                    ELSE 'due' END AS becomes
          {include entities/by_id}) AS e
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
   AND e.operation = :operation AND e.epoch = :epoch AND e.phase = 'held' AND e.until > {now} AND (:how <> 'success' OR e.status = :claim)
-- also
UPDATE holdfast_effect AS x
   SET state = 'done', ended_at = {now},
       result = (SELECT r.value -> 'r' FROM json_each(:results) AS r WHERE r.value ->> 'n' = x.name AND r.value ->> 'o' = x.ordinal)
 WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :operation AND x.state = 'begun'
   AND EXISTS (SELECT 1 FROM json_each(:results) AS r WHERE r.value ->> 'n' = x.name AND r.value ->> 'o' = x.ordinal)
-- then
UPDATE holdfast_entity AS e
   SET phase = t.becomes, status = CASE WHEN t.becomes = 'free' AND e.status = :claim THEN coalesce(:target, e.revert) ELSE e.status END,
       outcome = CASE WHEN t.becomes = 'free' THEN :outcome END, data = CASE WHEN t.becomes = 'free' THEN coalesce(:data, e.data) ELSE e.data END,
       version = e.version + 1, holder = NULL, until = NULL, quiet = 0, lost = 0, due_at = {now} + :delay, error = :message,
       failures = e.failures + (:how <> 'success' AND :outcome <> 'cancelled'), updated_at = {now}
  FROM (SELECT CASE h.name WHEN 'interrupted' THEN 'due' WHEN 'parked' THEN 'uncertain' ELSE 'free' END AS becomes
          FROM holdfast_history AS h WHERE h.shard = :shard AND h.workspace = :workspace AND h.id = :command) AS t
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
RETURNING {include entities/returning_columns}
-- else
{include entities/select_current}
