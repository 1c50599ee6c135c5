-- Steps that wait for a person to say what happened, with their runs: one, or those behind one.
-- $1 shard, $2 workspace, $3 run ('' for all), $4 behind, as run/step/visit, $5 limit
SELECT r.workspace, r.id, r.definition, coalesce(r.key, ''), r.status, r.version, r.input::text, r.state::text, r.memo::text, coalesce(r.output::text, ''), coalesce(r.error, ''),
       r.step, r.visit, r.cancel_requested, r.created_at, coalesce(r.started_at, 'epoch'), coalesce(r.finished_at, 'epoch'),
       s.name, s.visit, s.n, s.type, s.handler, s.status, s.input::text, coalesce(s.output::text, ''), coalesce(s.error, ''), coalesce(s.next, ''), s.attempts, s.failures,
       coalesce(s.holder, ''), s.epoch, coalesce(s.until, 'epoch'), s.deaths, s.quiet, s.lost, s.timeout, coalesce(s.due_at, 'epoch'), coalesce(s.deadline, 'epoch'), coalesce(s.deadline <= {now}, false),
       s.begun, s.uncertain, s.safety, s.unknown, coalesce(s.signal, ''), coalesce(s.fired, ''), coalesce(s.started_at, 'epoch'), coalesce(s.finished_at, 'epoch'),
       coalesce(g.id, ''), coalesce(g.payload::text, ''), coalesce(a.status, ''), coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content::text, '')
  FROM (SELECT d.*
          FROM {schema}.step d
         WHERE d.shard = $1::smallint AND d.workspace = $2::text AND d.uncertain AND ($3::text = '' OR d.run = $3)
           AND d.run || '/' || d.name || '/' || d.visit::text > $4::text COLLATE "C"
         ORDER BY d.run || '/' || d.name || '/' || d.visit::text
         LIMIT $5::bigint) AS s
 CROSS JOIN LATERAL (
       SELECT r.* FROM {schema}.run r
        WHERE r.shard = s.shard AND r.workspace = s.workspace AND r.id = s.run
        LIMIT 1) AS r
  LEFT JOIN LATERAL (
       SELECT g.id, g.payload FROM {schema}.signal g
        WHERE g.shard = s.shard AND g.workspace = s.workspace AND g.run = s.run AND g.type = s.signal AND g.taken IS NULL AND s.status = 'WAITING'
        ORDER BY g.n
        LIMIT 1) AS g ON true
  LEFT JOIN LATERAL (
       SELECT a.status, a.actor, a.label, a.content FROM {schema}.approval a
        WHERE s.type = 'approval' AND a.shard = s.shard AND a.workspace = s.workspace AND a.run = s.run AND a.step = s.name AND a.visit = s.visit
        LIMIT 1) AS a ON true
 ORDER BY s.run || '/' || s.name || '/' || s.visit::text
