-- The columns of a run with one of its steps, and the signal or approval that the step waits for (runs/join_inbox).
r.workspace, r.id, r.definition, coalesce(r.key, ''), r.status, r.version, r.input, r.state, r.memo, coalesce(r.output, ''), coalesce(r.error, ''),
r.step, r.visit, r.cancel_requested, r.created_at, coalesce(r.started_at, 0), coalesce(r.finished_at, 0), r.updated_at,
s.name, s.visit, s.n, s.type, s.handler, s.status, s.input, coalesce(s.output, ''), coalesce(s.error, ''), coalesce(s.next, ''), s.attempts,
s.failures, coalesce(s.holder, ''), s.epoch, coalesce(s.until, 0), s.deaths, s.quiet, s.lost, s.timeout, coalesce(s.due_at, 0),
coalesce(s.deadline, 0), coalesce(s.deadline <= {now}, 0), s.begun, s.uncertain, s.safety, s.unknown, coalesce(s.signal, ''),
coalesce(s.fired, ''), coalesce(s.started_at, 0), coalesce(s.finished_at, 0), coalesce(g.id, ''), coalesce(g.payload, ''),
coalesce(a.status, ''), coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content, '')
