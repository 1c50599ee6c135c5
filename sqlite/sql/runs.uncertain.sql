-- Steps that wait for a person to say what happened, with their runs: one, or those behind one.
-- ?1 shard, ?2 workspace, ?3 run ('' for all), ?4 behind, as run/step/visit, ?5 limit
-- do
SELECT r.workspace, r.id, r.definition, coalesce(r.key, ''), r.status, r.version, r.input, r.state, r.memo, coalesce(r.output, ''), coalesce(r.error, ''),
       r.step, r.visit, r.cancel_requested, r.created_at, coalesce(r.started_at, 0), coalesce(r.finished_at, 0),
       s.name, s.visit, s.n, s.type, s.handler, s.status, s.input, coalesce(s.output, ''), coalesce(s.error, ''), coalesce(s.next, ''), s.attempts, s.failures,
       coalesce(s.holder, ''), s.epoch, coalesce(s.until, 0), s.deaths, s.quiet, s.lost, s.timeout, coalesce(s.due_at, 0), coalesce(s.deadline, 0), coalesce(s.deadline <= {now}, 0),
       s.begun, s.uncertain, s.safety, s.unknown, coalesce(s.signal, ''), coalesce(s.fired, ''), coalesce(s.started_at, 0), coalesce(s.finished_at, 0),
       coalesce(g.id, ''), coalesce(g.payload, ''), coalesce(a.status, ''), coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content, '')
  FROM holdfast_step AS s INDEXED BY holdfast_step_uncertain
  JOIN holdfast_run AS r ON r.shard = s.shard AND r.workspace = s.workspace AND r.id = s.run
  LEFT JOIN holdfast_signal AS g ON g.shard = s.shard AND g.workspace = s.workspace AND g.run = s.run AND s.status = 'WAITING' AND g.id = (
       SELECT x.id FROM holdfast_signal AS x
        WHERE x.shard = s.shard AND x.workspace = s.workspace AND x.run = s.run AND x.type = s.signal AND x.taken IS NULL
        ORDER BY x.n
        LIMIT 1)
  LEFT JOIN holdfast_approval AS a ON s.type = 'approval' AND a.shard = s.shard AND a.workspace = s.workspace AND a.run = s.run AND a.step = s.name AND a.visit = s.visit
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.uncertain = 1 AND (?3 = '' OR s.run = ?3)
   AND s.run || '/' || s.name || '/' || s.visit > ?4
 ORDER BY s.run || '/' || s.name || '/' || s.visit
 LIMIT +?5
