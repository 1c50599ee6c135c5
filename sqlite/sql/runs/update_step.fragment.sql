-- Updates the current step of the run as the plan says.
UPDATE holdfast_step AS s
   SET status = x.v ->> 'status', output = coalesce(x.v -> 'output', s.output), error = x.v ->> 'error', next = x.v ->> 'next',
       attempts = x.v ->> 'attempts', failures = x.v ->> 'failures', deaths = x.v ->> 'deaths', quiet = x.v ->> 'quiet', lost = x.v ->> 'lost',
       safety = coalesce(x.v ->> 'safety', s.safety), unknown = coalesce(x.v ->> 'unknown', s.unknown), timeout = coalesce(x.v ->> 'timeout', s.timeout),
       holder = CASE x.v ->> 'hold' WHEN 'take' THEN :holder WHEN 'keep' THEN s.holder END,
       epoch = s.epoch + (x.v ->> 'hold' = 'take'),
       until = CASE x.v ->> 'hold' WHEN 'take' THEN r.updated_at + min(:lease, coalesce(x.v ->> 'timeout', s.timeout)) WHEN 'keep' THEN s.until END,
       taken_at = CASE x.v ->> 'hold' WHEN 'take' THEN r.updated_at ELSE s.taken_at END,
       due_at = CASE x.v ->> 'when' WHEN 'in' THEN r.updated_at + (x.v ->> 'ms') WHEN 'keep' THEN s.due_at WHEN 'deadline' THEN s.deadline
                                    WHEN 'unpark' THEN coalesce(s.later, r.updated_at) END,
       later = CASE x.v ->> 'when' WHEN 'park' THEN s.due_at WHEN 'parkin' THEN r.updated_at + (x.v ->> 'ms') END,
       uncertain = x.v ->> 'uncertain', fired = CASE WHEN x.v ->> 'clear' THEN NULL ELSE s.fired END,
       started_at = coalesce(s.started_at, CASE WHEN x.v ->> 'status' IN ('RUNNING', 'WAITING') THEN r.updated_at END),
       finished_at = CASE WHEN x.v ->> 'over' THEN r.updated_at END
  FROM (SELECT :plan -> '$.touch' AS v) AS x, holdfast_run AS r
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit AND x.v IS NOT NULL
   AND r.shard = :shard AND r.workspace = :workspace AND r.id = :run
