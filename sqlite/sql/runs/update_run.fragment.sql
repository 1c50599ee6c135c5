-- Updates a run by its plan: a WHERE follows.
UPDATE holdfast_run AS r
   SET version = r.version + json_array_length(:plan, '$.events'), status = :plan ->> '$.run.status', step = :plan ->> '$.run.step', visit = :plan ->> '$.run.visit',
       state = coalesce(:plan -> '$.run.state', r.state), memo = coalesce(:plan -> '$.run.memo', r.memo), output = coalesce(:plan -> '$.run.output', r.output),
       error = :plan ->> '$.run.error', cancel_requested = :plan ->> '$.run.cancel',
       started_at = coalesce(r.started_at, CASE WHEN :plan ->> '$.run.status' NOT IN ('PENDING', 'CANCELLED') THEN {now} END),
       finished_at = CASE WHEN :plan ->> '$.run.over' THEN {now} END, prune_at = CASE WHEN :plan ->> '$.run.over' THEN {now} + (:plan ->> '$.run.keep') END, updated_at = {now}
