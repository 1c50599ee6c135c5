-- Lists the steps of a run in their order, after a given one.
SELECT s.name, s.visit, s.n, s.type, s.handler, s.status, s.input, coalesce(s.output, ''), coalesce(s.error, ''), coalesce(s.next, ''), s.attempts, s.failures,
       coalesce(s.holder, ''), s.epoch, coalesce(s.until, 0), s.deaths, s.quiet, s.lost, s.timeout, coalesce(s.due_at, 0), coalesce(s.deadline, 0), coalesce(s.deadline <= {now}, 0),
       s.begun, s.uncertain, s.safety, s.unknown, coalesce(s.signal, ''), coalesce(s.fired, ''), coalesce(s.started_at, 0), coalesce(s.finished_at, 0)
  FROM holdfast_step AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.n > :after
 ORDER BY s.n
 LIMIT :limit
