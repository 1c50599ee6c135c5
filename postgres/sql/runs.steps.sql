-- The steps of a run, in their order, behind one of them.
-- $1 shard, $2 workspace, $3 run, $4 behind, $5 limit
SELECT s.name, s.visit, s.n, s.type, s.handler, s.status, s.input::text, coalesce(s.output::text, ''), coalesce(s.error, ''), coalesce(s.next, ''), s.attempts, s.failures,
       coalesce(s.holder, ''), s.epoch, coalesce(s.until, 'epoch'), s.deaths, s.quiet, s.lost, s.timeout, coalesce(s.due_at, 'epoch'), coalesce(s.deadline, 'epoch'), coalesce(s.deadline <= {now}, false),
       s.begun, s.uncertain, s.safety, s.unknown, coalesce(s.signal, ''), coalesce(s.fired, ''), coalesce(s.started_at, 'epoch'), coalesce(s.finished_at, 'epoch')
  FROM {schema}.step s
 WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.run = $3::text
   AND s.shard + 0 = $1::smallint + 0 AND s.workspace || '/' || s.run = $2::text || '/' || $3::text AND s.n > $4::bigint
 ORDER BY s.n
 LIMIT $5::bigint
