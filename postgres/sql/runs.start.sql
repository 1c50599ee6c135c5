-- Starts a run, with its first steps, unless there is one under its key: that one is
-- answered, or nothing, where it was made this very moment.
-- $4 run, $5 definition, $6 key, $7 input, $8 holder, $9 lease in ms, $10 plan
-- $11 revision, $12 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::text[],
                         $11::bigint[], $12::text[])
             WITH ORDINALITY AS m(shard, workspace, command, run, definition, key, input, holder, lease, plan, revision, marks, member)
     WHERE {known}
), t AS MATERIALIZED (
    SELECT {now} AS now
), made AS (
    INSERT INTO {schema}.run
        (shard, workspace, id, definition, key, status, version, input, state, memo, output, error, step, visit, cancel_requested,
         created_at, started_at, finished_at, prune_at, updated_at)
    SELECT m.shard, m.workspace, m.run, m.definition, m.key, p.v ->> 'status'::text, pg_catalog.json_array_length(m.plan::json -> 'events'::text) - 1, m.input::json, p.v -> 'state'::text, p.v -> 'memo'::text,
           p.v -> 'output'::text, p.v ->> 'error'::text, p.v ->> 'step'::text, (p.v ->> 'visit'::text)::bigint, false, t.now,
           CASE WHEN p.v ->> 'status'::text <> 'PENDING' THEN t.now END, CASE WHEN (p.v ->> 'over'::text)::boolean THEN t.now END,
           CASE WHEN (p.v ->> 'over'::text)::boolean THEN t.now + (p.v ->> 'keep'::text)::bigint::float8 * interval '1 ms' END, t.now
      FROM t, m CROSS JOIN LATERAL (SELECT m.plan::json -> 'run'::text) AS p(v)
     WHERE m.key IS NULL
        OR CASE WHEN EXISTS (SELECT 1 FROM {schema}.run r WHERE r.shard = m.shard AND r.workspace = m.workspace AND r.key = m.key)
                THEN false
                ELSE {enter}(pg_catalog.hashtextextended('run/' || m.shard::text || '/' || m.workspace || '/' || m.key, 0)){entered} END
     ORDER BY m.shard, m.workspace, m.key
    ON CONFLICT (shard, workspace, key) WHERE key IS NOT NULL DO NOTHING
    RETURNING shard, workspace, id
), ok AS MATERIALIZED (
    SELECT m.member, m.shard, m.workspace, m.run, m.holder, m.lease, m.plan::json AS plan, -1::bigint AS version
      FROM m JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.id = m.run
), added AS (
    INSERT INTO {schema}.step
        (shard, workspace, run, name, visit, n, type, handler, status, input, output, error, next, attempts, failures, holder, epoch, until, deaths,
         timeout, taken_at, due_at, deadline, begun, uncertain, safety, unknown, signal, created_at, started_at, finished_at)
    SELECT ok.shard, ok.workspace, ok.run, x.v ->> 'name'::text, (x.v ->> 'visit'::text)::bigint, (x.v ->> 'n'::text)::bigint, x.v ->> 'type'::text, x.v ->> 'handler'::text, x.v ->> 'status'::text,
           x.v -> 'input'::text, x.v -> 'output'::text, x.v ->> 'error'::text, x.v ->> 'next'::text, (x.v ->> 'attempts'::text)::bigint, 0,
           CASE WHEN x.held THEN ok.holder END, CASE WHEN x.held THEN 1 ELSE 0 END,
           CASE WHEN x.held THEN t.now + least(ok.lease, (x.v ->> 'timeout'::text)::bigint)::float8 * interval '1 ms' END, 0,
           (x.v ->> 'timeout'::text)::bigint, CASE WHEN x.held THEN t.now END,
           CASE WHEN EXISTS (SELECT 1 FROM {schema}.signal g
                              WHERE g.shard = ok.shard AND g.workspace = ok.workspace AND g.run = ok.run AND g.type = x.v ->> 'signal'::text AND g.taken IS NULL
                                AND g.id <> coalesce(ok.plan ->> 'signal'::text, '')) THEN t.now
                WHEN x.v ->> 'at'::text IS NOT NULL THEN pg_catalog.to_timestamp((x.v ->> 'at'::text)::numeric / 1000::numeric)
                ELSE t.now + (x.v ->> 'due'::text)::bigint::float8 * interval '1 ms' END,
           t.now + (x.v ->> 'wait'::text)::bigint::float8 * interval '1 ms', (x.v ->> 'begun'::text)::bigint, false, x.v ->> 'safety'::text, x.v ->> 'unknown'::text, x.v ->> 'signal'::text, t.now,
           CASE WHEN x.v ->> 'status'::text <> 'PENDING' THEN t.now END, CASE WHEN (x.v ->> 'over'::text)::boolean THEN t.now END
      FROM t, ok CROSS JOIN LATERAL (
           SELECT e.v, (e.v ->> 'held'::text)::boolean AS held FROM pg_catalog.json_array_elements(ok.plan -> 'add'::text) AS e(v)) AS x
    RETURNING shard, workspace, run, until
), body AS (
    INSERT INTO {schema}.effect AS x (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at)
    SELECT ok.shard, ok.workspace, ok.plan -> 'body'::text ->> 'operation'::text, '$body', 0, (ok.plan -> 'body'::text ->> 'epoch'::text)::bigint, 'begun', ok.plan -> 'body'::text ->> 'policy'::text, t.now
      FROM t, ok
     WHERE ok.plan -> 'body'::text ->> 'operation'::text IS NOT NULL
    ON CONFLICT (shard, workspace, operation, name, ordinal) DO UPDATE
       SET state = 'begun', epoch = excluded.epoch, policy = excluded.policy, begun_at = excluded.begun_at, result = NULL, ended_at = NULL
     WHERE x.state = 'notDone'
    RETURNING x.shard, x.workspace, x.operation
), asked AS (
    INSERT INTO {schema}.approval (shard, workspace, run, step, visit, prompt, requesters, status, expires_at, created_at)
    SELECT ok.shard, ok.workspace, ok.run, ok.plan -> 'ask'::text ->> 'step'::text, (ok.plan -> 'ask'::text ->> 'visit'::text)::bigint,
           ok.plan -> 'ask'::text ->> 'prompt'::text, ok.plan -> 'ask'::text -> 'requesters'::text, 'pending', t.now + (ok.plan -> 'ask'::text ->> 'within'::text)::bigint::float8 * interval '1 ms', t.now
      FROM t, ok
     WHERE ok.plan -> 'ask'::text ->> 'step'::text IS NOT NULL
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT m.shard, m.command, e.n - 1, m.workspace, '$run/' || ok.run, ok.version + e.n, e.v ->> 'name'::text, e.v -> 'data'::text, t.now
      FROM t, ok JOIN m ON m.member = ok.member
     CROSS JOIN LATERAL pg_catalog.json_array_elements(ok.plan -> 'events'::text) WITH ORDINALITY AS e(v, n)
    RETURNING shard, id, workspace, stream, version
){mark}
SELECT m.member,
       CASE WHEN ok.member IS NOT NULL THEN 1 WHEN r.id IS NOT NULL THEN 0 ELSE 2 END,
       coalesce(ok.run, r.id, ''), pg_catalog.json_array_length(m.plan::json -> 'events'::text) - 1,
       coalesce((SELECT pg_catalog.max(added.until) FROM added WHERE added.shard = m.shard AND added.workspace = m.workspace AND added.run = m.run), 'epoch'), t.now
  FROM t, m
  LEFT JOIN ok ON ok.member = m.member
  LEFT JOIN LATERAL (
       SELECT r.id FROM {schema}.run r WHERE r.shard = m.shard AND r.workspace = m.workspace AND r.key = m.key LIMIT 1) AS r ON true
