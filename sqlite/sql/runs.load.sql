-- A run with a step of it: one that is named, or the one that it stands at.
-- ?1 shard, ?2 workspace, ?3 run, ?4 step ('' for where it stands), ?5 visit
-- do
SELECT r.workspace, r.id, r.definition, coalesce(r.key, ''), r.status, r.version, r.input, r.state, r.memo, coalesce(r.output, ''), coalesce(r.error, ''),
       r.step, r.visit, r.cancel_requested, r.created_at, coalesce(r.started_at, 0), coalesce(r.finished_at, 0),
       s.name, s.visit, s.n, s.type, s.handler, s.status, s.input, coalesce(s.output, ''), coalesce(s.error, ''), coalesce(s.next, ''), s.attempts, s.failures,
       coalesce(s.holder, ''), s.epoch, coalesce(s.until, 0), s.deaths, s.quiet, s.lost, s.timeout, coalesce(s.due_at, 0), coalesce(s.deadline, 0), coalesce(s.deadline <= {now}, 0),
       s.begun, s.uncertain, s.safety, s.unknown, coalesce(s.signal, ''), coalesce(s.fired, ''), coalesce(s.started_at, 0), coalesce(s.finished_at, 0),
       coalesce(g.id, ''), coalesce(g.payload, ''), coalesce(a.status, ''), coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content, '')
  FROM holdfast_run AS r
  JOIN holdfast_step AS s ON s.shard = r.shard AND s.workspace = r.workspace AND s.run = r.id
                         AND s.name = CASE WHEN ?4 = '' THEN r.step ELSE ?4 END AND s.visit = CASE WHEN ?4 = '' THEN r.visit ELSE ?5 END
  LEFT JOIN holdfast_signal AS g ON g.shard = s.shard AND g.workspace = s.workspace AND g.run = s.run AND s.status = 'WAITING' AND g.id = (
       SELECT x.id FROM holdfast_signal AS x
        WHERE x.shard = s.shard AND x.workspace = s.workspace AND x.run = s.run AND x.type = s.signal AND x.taken IS NULL
        ORDER BY x.n
        LIMIT 1)
  LEFT JOIN holdfast_approval AS a ON s.type = 'approval' AND a.shard = s.shard AND a.workspace = s.workspace AND a.run = s.run AND a.step = s.name AND a.visit = s.visit
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?3
