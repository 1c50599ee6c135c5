-- Releases an expired lease, depending on the effects begun under it: if no begun effect may have happened, the entity is reverted;
-- otherwise it stays in the claim, to be resumed or, if it cannot be resumed or too many holders have crashed, to be parked until a person
-- decides.
-- do
{include history/write}
SELECT :shard, :command, 0, :workspace, '$entity/' || :lifecycle || '/' || :entity, e.version + 1,
       CASE WHEN e.begun = 0 AND NOT (e.quiet AND e.status = :claim) THEN 'recovered'
            WHEN e.begun > 0 AND (e.manual OR :resume = 0 OR NOT e.quiet AND e.deaths + 1 >= :allowed) THEN 'parked' WHEN e.quiet THEN 'lost' ELSE 'interrupted' END,
       json_object('from', e.status, 'to', CASE WHEN e.begun = 0 AND NOT e.quiet AND e.status = :claim THEN e.revert ELSE e.status END, 'step', e.step, 'requester', e.requester,
                   'operation', e.operation, 'epoch', e.epoch, 'effects', e.begun, 'deaths', e.deaths + (NOT e.quiet), 'lost', CASE WHEN e.quiet THEN e.lost + 1 ELSE 0 END,
                   'message', CASE WHEN e.quiet THEN 'handed out to ' || e.holder || ', but no response arrived' ELSE 'the lease of holder ' || e.holder || ' expired' END, 'note', json(:note)), NULL, NULL, NULL, {now}
  {include entities/by_id}
   AND e.epoch = :epoch AND e.phase = 'held' AND e.until <= {now}
-- then
UPDATE holdfast_entity AS e
   SET phase = CASE t.fate WHEN 'recovered' THEN 'free' WHEN 'parked' THEN 'uncertain' ELSE 'due' END,
       status = CASE WHEN t.fate = 'recovered' AND e.status = :claim THEN e.revert ELSE e.status END, outcome = CASE WHEN t.fate = 'recovered' THEN 'recovered' END,
       error = t.message, deaths = e.deaths + (NOT e.quiet), version = e.version + 1, quiet = 0, lost = CASE WHEN t.fate = 'lost' THEN e.lost + 1 ELSE 0 END,
       holder = NULL, until = NULL, due_at = {now} + CASE WHEN t.fate = 'lost' THEN :pause ELSE 0 END, updated_at = {now}
  FROM (SELECT h.name AS fate, h.data ->> 'message' AS message FROM holdfast_history AS h WHERE h.shard = :shard AND h.workspace = :workspace AND h.id = :command) AS t
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
RETURNING {include entities/returning_columns}
-- else
{include entities/select_current}
