-- A run with a step of it: one that is named, or the one that it stands at.
-- $1 shard, $2 workspace, $3 run, $4 step ('' for where it stands), $5 visit
SELECT r.workspace, r.id, r.definition, coalesce(r.key, ''), r.status, r.version, r.input::text, r.state::text, r.memo::text, coalesce(r.output::text, ''), coalesce(r.error, ''),
       r.step, r.visit, r.cancel_requested, r.created_at, coalesce(r.started_at, 'epoch'), coalesce(r.finished_at, 'epoch'),
       s.name, s.visit, s.n, s.type, s.handler, s.status, s.input::text, coalesce(s.output::text, ''), coalesce(s.error, ''), coalesce(s.next, ''), s.attempts, s.failures,
       coalesce(s.holder, ''), s.epoch, coalesce(s.until, 'epoch'), s.deaths, s.quiet, s.lost, s.timeout, coalesce(s.due_at, 'epoch'), coalesce(s.deadline, 'epoch'), coalesce(s.deadline <= {now}, false),
       s.begun, s.uncertain, s.safety, s.unknown, coalesce(s.signal, ''), coalesce(s.fired, ''), coalesce(s.started_at, 'epoch'), coalesce(s.finished_at, 'epoch'),
       coalesce(g.id, ''), coalesce(g.payload::text, ''), coalesce(a.status, ''), coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content::text, '')
  FROM {schema}.run r
 CROSS JOIN LATERAL (
       SELECT s.* FROM {schema}.step s
        WHERE s.shard = r.shard AND s.workspace = r.workspace AND s.run = r.id
          AND s.name = CASE WHEN $4::text = '' THEN r.step ELSE $4 END AND s.visit = CASE WHEN $4::text = '' THEN r.visit ELSE $5::bigint END
        LIMIT 1) AS s
  LEFT JOIN LATERAL (
       SELECT g.id, g.payload FROM {schema}.signal g
        WHERE g.shard = s.shard AND g.workspace = s.workspace AND g.run = s.run AND g.type = s.signal AND g.taken IS NULL AND s.status = 'WAITING'
        ORDER BY g.n
        LIMIT 1) AS g ON true
  LEFT JOIN LATERAL (
       SELECT a.status, a.actor, a.label, a.content FROM {schema}.approval a
        WHERE s.type = 'approval' AND a.shard = s.shard AND a.workspace = s.workspace AND a.run = s.run AND a.step = s.name AND a.visit = s.visit
        LIMIT 1) AS a ON true
 WHERE r.shard = $1::smallint AND r.workspace = $2::text AND r.id = $3::text
