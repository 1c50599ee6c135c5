-- Lists the steps of a run in their order, after a given one.
SELECT s.name, s.visit, s.n, s.type, s.handler, s.status, s.input::text, coalesce(s.output::text, ''), coalesce(s.error, ''), coalesce(s.next, ''), s.attempts, s.failures,
       coalesce(s.holder, ''), s.epoch, coalesce(s.until, 'epoch'), s.deaths, s.quiet, s.lost, s.timeout, coalesce(s.due_at, 'epoch'), coalesce(s.deadline, 'epoch'), coalesce(s.deadline <= {now}, false),
       s.begun, s.uncertain, s.safety, s.unknown, coalesce(s.signal, ''), coalesce(s.fired, ''), coalesce(s.started_at, 'epoch'), coalesce(s.finished_at, 'epoch')
  FROM {schema}.step s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run
   AND s.shard + 0 = :shard + 0 AND s.workspace || '/' || s.run = :workspace || '/' || :run AND s.n > :after
 ORDER BY s.n
 LIMIT :limit
