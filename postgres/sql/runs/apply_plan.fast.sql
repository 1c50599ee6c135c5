-- Moves a run by a plan, as runs.apply_plan, if the plan has no effects, signals or approvals and no
-- reaction follows the run; otherwise does nothing and returns nothing.
-- Values that may be a JSON null are not read by json_to_record, which would return SQL NULL.
WITH p AS MATERIALIZED (
    SELECT d.saw, d.touch IS NOT NULL AS touches, d.add, d.events, d.actor, pg_catalog.json_array_length(d.events) AS n, r.*
      FROM pg_catalog.json_to_record(:plan::json) AS d(run json, touch json, add json, events json, plain boolean, saw json, actor text)
     CROSS JOIN LATERAL pg_catalog.json_to_record(d.run) AS r(status text, step text, visit bigint, state json, memo json, output json, error text, cancel boolean, over boolean, keep bigint)
     WHERE d.plain AND :marks IS NULL
       AND :revision = coalesce((SELECT g.revision FROM {schema}.registry g WHERE g.shard = :shard AND g.workspace = :workspace), 0)
), cur AS MATERIALIZED (
    SELECT r.version
      FROM {schema}.run r
     WHERE r.shard = :shard AND r.workspace = :workspace AND r.id = :run AND EXISTS (SELECT 1 FROM p)
       FOR UPDATE
), st AS MATERIALIZED (
    SELECT s.epoch, s.until, s.due_at, s.begun, s.fired
      FROM cur CROSS JOIN LATERAL (
           SELECT s.epoch, s.until, s.due_at, s.begun, s.fired FROM {schema}.step s
            WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit
              FOR UPDATE) AS s
), t AS MATERIALIZED (
    SELECT {now} AS now, pg_catalog.count(*) FROM st
), ok AS MATERIALIZED (
    SELECT cur.version, t.now
      FROM t, cur, st, p
     WHERE cur.version = :version AND st.epoch = :epoch
       AND (st.begun <> (p.saw ->> 'begun'::text)::bigint OR coalesce(st.fired, '') <> p.saw ->> 'fired'::text) IS NOT TRUE
       AND CASE :how WHEN 'held' THEN coalesce(st.until > t.now, false)
                         WHEN 'died' THEN coalesce(st.until <= t.now, false)
                         WHEN 'due' THEN coalesce(st.due_at <= t.now, false)
                         ELSE true END
), moved AS (
    UPDATE {schema}.run r
       SET version = ok.version + p.n, status = p.status, step = p.step, visit = p.visit, state = coalesce(p.state, r.state), memo = coalesce(p.memo, r.memo),
           output = coalesce(p.output, r.output), error = p.error, cancel_requested = p.cancel,
           started_at = coalesce(r.started_at, CASE WHEN p.status NOT IN ('PENDING', 'CANCELLED') THEN ok.now END),
           finished_at = CASE WHEN p.over THEN ok.now END, prune_at = CASE WHEN p.over THEN ok.now + p.keep::float8 * interval '1 ms' END, updated_at = ok.now
      FROM ok, p
     WHERE r.shard = :shard AND r.workspace = :workspace AND r.id = :run
    RETURNING r.version
), touched AS (
    UPDATE {schema}.step s
       SET status = k.status, output = coalesce(:plan::json -> 'touch'::text -> 'output'::text, s.output), error = k.error, next = k.next, attempts = k.attempts, failures = k.failures, deaths = k.deaths, quiet = k.quiet, lost = k.lost,
           safety = coalesce(k.safety, s.safety), unknown = coalesce(k.unknown, s.unknown), timeout = coalesce(k.timeout, s.timeout),
           holder = CASE k.hold WHEN 'take' THEN :holder WHEN 'keep' THEN s.holder END,
           epoch = s.epoch + CASE k.hold WHEN 'take' THEN 1 ELSE 0 END,
           until = CASE k.hold WHEN 'take' THEN ok.now + least(:lease, coalesce(k.timeout, s.timeout))::float8 * interval '1 ms' WHEN 'keep' THEN s.until END,
           taken_at = CASE k.hold WHEN 'take' THEN ok.now ELSE s.taken_at END,
           due_at = CASE k."when" WHEN 'in' THEN ok.now + k.ms::float8 * interval '1 ms' WHEN 'keep' THEN s.due_at WHEN 'deadline' THEN s.deadline
                                  WHEN 'unpark' THEN coalesce(s.later, ok.now) END,
           later = CASE k."when" WHEN 'park' THEN s.due_at WHEN 'parkin' THEN ok.now + k.ms::float8 * interval '1 ms' END,
           uncertain = k.uncertain, fired = CASE WHEN k.clear THEN NULL ELSE s.fired END,
           started_at = coalesce(s.started_at, CASE WHEN k.status IN ('RUNNING', 'WAITING') THEN ok.now END),
           finished_at = CASE WHEN k.over THEN ok.now END
      FROM ok, p, pg_catalog.json_to_record(:plan::json -> 'touch'::text) AS k(status text, error text, next text, attempts bigint, failures bigint, deaths bigint, quiet boolean, lost bigint, hold text,
                                                                "when" text, ms bigint, uncertain boolean, over boolean, clear boolean, safety text, unknown text, timeout bigint)
     WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit AND p.touches
    RETURNING s.until
), added AS (
    INSERT INTO {schema}.step
        (shard, workspace, run, name, visit, n, type, handler, status, input, output, error, next, attempts, failures, holder, epoch, until, deaths,
         timeout, taken_at, due_at, deadline, begun, uncertain, safety, unknown, created_at, started_at, finished_at)
    SELECT :shard, :workspace, :run, a.name, a.visit, a.n, a.type, a.handler, a.status, e.v -> 'input'::text, e.v -> 'output'::text, a.error, a.next, a.attempts, 0,
           CASE WHEN a.held THEN :holder END, CASE WHEN a.held THEN 1 ELSE 0 END,
           CASE WHEN a.held THEN ok.now + least(:lease, a.timeout)::float8 * interval '1 ms' END, 0, a.timeout, CASE WHEN a.held THEN ok.now END,
           CASE WHEN a.at IS NOT NULL THEN pg_catalog.to_timestamp(a.at::numeric / 1000::numeric) ELSE ok.now + a.due::float8 * interval '1 ms' END,
           ok.now + a.wait::float8 * interval '1 ms', a.begun, false, a.safety, a.unknown, ok.now,
           CASE WHEN a.status <> 'PENDING' THEN ok.now END, CASE WHEN a.over THEN ok.now END
      FROM ok, p CROSS JOIN LATERAL pg_catalog.json_array_elements(p.add) AS e(v)
     CROSS JOIN LATERAL pg_catalog.json_to_record(e.v) AS a(name text, visit bigint, n bigint, type text, handler text, status text, error text, next text, attempts bigint,
                                                 timeout bigint, held boolean, due bigint, at bigint, wait bigint, safety text, unknown text, begun bigint, over boolean)
    RETURNING until
), {include history/write}
    SELECT :shard, :command, e.n - 1, :workspace, '$run/' || :run, ok.version + e.n, e.v ->> 'name'::text, e.v -> 'data'::text, NULL, NULL, p.actor, ok.now
      FROM ok, p CROSS JOIN LATERAL pg_catalog.json_array_elements(p.events) WITH ORDINALITY AS e(v, n)
)
SELECT moved.version, coalesce((SELECT touched.until FROM touched), (SELECT pg_catalog.max(added.until) FROM added), 'epoch'), ok.now
  FROM moved, ok
