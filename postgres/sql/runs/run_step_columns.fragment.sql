-- The columns of a run with one of its steps, and the signal or approval that the step waits for (runs/join_inbox).
r.workspace, r.id, r.definition, coalesce(r.key, ''), r.status, r.version, r.input::text, r.state::text, r.memo::text, coalesce(r.output::text, ''),
coalesce(r.error, ''), r.step, r.visit, r.cancel_requested, r.created_at, coalesce(r.started_at, 'epoch'), coalesce(r.finished_at, 'epoch'), r.updated_at,
s.name, s.visit, s.n, s.type, s.handler, s.status, s.input::text, coalesce(s.output::text, ''), coalesce(s.error, ''), coalesce(s.next, ''),
s.attempts, s.failures, coalesce(s.holder, ''), s.epoch, coalesce(s.until, 'epoch'), s.deaths, s.quiet, s.lost, s.timeout, coalesce(s.due_at, 'epoch'),
coalesce(s.deadline, 'epoch'), coalesce(s.deadline <= {now}, false), s.begun, s.uncertain, s.safety, s.unknown, coalesce(s.signal, ''),
coalesce(s.fired, ''), coalesce(s.started_at, 'epoch'), coalesce(s.finished_at, 'epoch'), coalesce(g.id, ''), coalesce(g.payload::text, ''),
coalesce(a.status, ''), coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content::text, '')
