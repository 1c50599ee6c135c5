-- Steps that are due, with their runs: of one workspace or of all.
-- ?1 shard, ?2 workspace ('' for all), ?3 handlers as a JSON list, ?4 limit, ?5 the kind that the handlers must be ('' for those of a program)
-- do
SELECT r.workspace, r.id, r.definition, coalesce(r.key, ''), r.status, r.version, r.input, r.state, r.memo, coalesce(r.output, ''), coalesce(r.error, ''),
       r.step, r.visit, r.cancel_requested, r.created_at, coalesce(r.started_at, 0), coalesce(r.finished_at, 0),
       s.name, s.visit, s.n, s.type, s.handler, s.status, s.input, coalesce(s.output, ''), coalesce(s.error, ''), coalesce(s.next, ''), s.attempts, s.failures,
       coalesce(s.holder, ''), s.epoch, coalesce(s.until, 0), s.deaths, s.quiet, s.lost, s.timeout, coalesce(s.due_at, 0), coalesce(s.deadline, 0), coalesce(s.deadline <= {now}, 0),
       s.begun, s.uncertain, s.safety, s.unknown, coalesce(s.signal, ''), coalesce(s.fired, ''), coalesce(s.started_at, 0), coalesce(s.finished_at, 0),
       coalesce(g.id, ''), coalesce(g.payload, ''), coalesce(a.status, ''), coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content, '')
  FROM (SELECT d.*
          FROM json_each(?3) AS h
         CROSS JOIN holdfast_step AS d INDEXED BY holdfast_step_due
         WHERE ?2 = '' AND d.shard = ?1 AND d.handler = h.value AND d.due_at IS NOT NULL AND d.due_at <= {now}
        UNION ALL
        SELECT d.* -- however much is due in others
          FROM json_each(?3) AS h
         CROSS JOIN holdfast_step AS d INDEXED BY holdfast_step_turn
         WHERE ?2 <> '' AND d.shard = ?1 AND d.handler = h.value AND d.workspace = ?2 AND d.due_at IS NOT NULL AND d.due_at <= {now}) AS s
 CROSS JOIN holdfast_run AS r ON r.shard = s.shard AND r.workspace = s.workspace AND r.id = s.run
  LEFT JOIN holdfast_signal AS g ON g.shard = s.shard AND g.workspace = s.workspace AND g.run = s.run AND s.status = 'WAITING' AND g.id = (
       SELECT x.id FROM holdfast_signal AS x
        WHERE x.shard = s.shard AND x.workspace = s.workspace AND x.run = s.run AND x.type = s.signal AND x.taken IS NULL
        ORDER BY x.n
        LIMIT 1)
  LEFT JOIN holdfast_approval AS a ON s.type = 'approval' AND a.shard = s.shard AND a.workspace = s.workspace AND a.run = s.run AND a.step = s.name AND a.visit = s.visit
 WHERE s.shard = ?1 AND (?5 = '' OR EXISTS (SELECT 1 FROM holdfast_handler AS k WHERE k.shard = s.shard AND k.workspace = s.workspace AND k.name = s.handler AND k.kind = ?5))
 ORDER BY s.due_at
 LIMIT +?4
