-- Steps that are due, with their runs: of one workspace or of all.
-- $1 shard, $2 workspace ('' for all), $3 handlers as a JSON list, $4 limit, $5 the kind that the handlers must be ('' for those of a program)
SELECT r.workspace, r.id, r.definition, coalesce(r.key, ''), r.status, r.version, r.input::text, r.state::text, r.memo::text, coalesce(r.output::text, ''), coalesce(r.error, ''),
       r.step, r.visit, r.cancel_requested, r.created_at, coalesce(r.started_at, 'epoch'), coalesce(r.finished_at, 'epoch'),
       s.name, s.visit, s.n, s.type, s.handler, s.status, s.input::text, coalesce(s.output::text, ''), coalesce(s.error, ''), coalesce(s.next, ''), s.attempts, s.failures,
       coalesce(s.holder, ''), s.epoch, coalesce(s.until, 'epoch'), s.deaths, s.quiet, s.lost, s.timeout, coalesce(s.due_at, 'epoch'), coalesce(s.deadline, 'epoch'), coalesce(s.deadline <= {now}, false),
       s.begun, s.uncertain, s.safety, s.unknown, coalesce(s.signal, ''), coalesce(s.fired, ''), coalesce(s.started_at, 'epoch'), coalesce(s.finished_at, 'epoch'),
       coalesce(g.id, ''), coalesce(g.payload::text, ''), coalesce(a.status, ''), coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content::text, '')
  FROM pg_catalog.jsonb_array_elements_text($3::text::jsonb) AS h(name)
 CROSS JOIN LATERAL (
       (SELECT d.*
          FROM {schema}.step d
         WHERE $2::text = '' AND d.shard = $1::smallint AND d.handler = h.name AND d.due_at <= (SELECT {now})
           AND ($5::text = '' OR EXISTS (SELECT 1 FROM {schema}.handler k WHERE k.shard = d.shard AND k.workspace = d.workspace AND k.name = d.handler AND k.kind = $5))
         ORDER BY d.due_at
         LIMIT $4::bigint)
       UNION ALL
       (SELECT d.* -- however much is due in others
          FROM {schema}.step d
         WHERE $2 <> '' AND d.shard + 0 = $1 AND d.handler = h.name AND d.workspace = $2 AND d.due_at <= (SELECT {now})
           AND ($5 = '' OR EXISTS (SELECT 1 FROM {schema}.handler k WHERE k.shard = d.shard AND k.workspace = d.workspace AND k.name = d.handler AND k.kind = $5))
         ORDER BY d.due_at
         LIMIT $4)) AS s
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
 ORDER BY s.due_at
 LIMIT $4::bigint
