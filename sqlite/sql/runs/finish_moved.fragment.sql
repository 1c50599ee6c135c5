-- Completes a step under its lease, moves its run and begins the next step. {1} is the number of events without then_event.
-- {2} and {3} are the step and the visit that the run is at then, or NULL for those that it is at.

-- do
UPDATE holdfast_run AS r
   SET version = r.version + {1} + (:then_event IS NOT NULL), status = :status, step = coalesce({2}, r.step), visit = coalesce({3}, r.visit),
       state = coalesce(:state, r.state), memo = :memo, output = coalesce(:result, r.output), error = NULL,
       started_at = coalesce(r.started_at, {now}), finished_at = CASE :ended WHEN 1 THEN {now} END, prune_at = CASE :ended WHEN 1 THEN {now} + :keep END, updated_at = {now}
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.id = :run AND r.version = :version
   AND EXISTS (SELECT 1 FROM holdfast_step AS s
                WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit AND s.epoch = :epoch AND s.until > {now})
RETURNING version,
          {include runs/begun_until updated_at},
          updated_at
-- then
UPDATE holdfast_step AS s
   SET status = 'COMPLETED', output = :output, error = NULL, next = :next, quiet = 0, lost = 0, holder = NULL, until = NULL, due_at = NULL, later = NULL, uncertain = 0,
       finished_at = :did3
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit
-- also
{include runs/begin_step :did3}
