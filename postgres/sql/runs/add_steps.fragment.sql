-- Inserts the steps that a plan adds; {1} is the shard of ok.
added AS (
    INSERT INTO {schema}.step
        (shard, workspace, run, name, visit, n, type, handler, status, input, output, error, next, attempts, failures, holder, epoch, until, deaths,
         timeout, taken_at, due_at, deadline, begun, uncertain, safety, unknown, signal, created_at, started_at, finished_at)
    SELECT ok.shard, ok.workspace, ok.run, x.v ->> 'name'::text, (x.v ->> 'visit'::text)::bigint, (x.v ->> 'n'::text)::bigint, x.v ->> 'type'::text, x.v ->> 'handler'::text, x.v ->> 'status'::text,
           x.v -> 'input'::text, x.v -> 'output'::text, x.v ->> 'error'::text, x.v ->> 'next'::text, (x.v ->> 'attempts'::text)::bigint, 0,
           CASE WHEN x.held THEN ok.holder END, CASE WHEN x.held THEN 1 ELSE 0 END,
           CASE WHEN x.held THEN t.now + least(ok.lease, (x.v ->> 'timeout'::text)::bigint)::float8 * interval '1 ms' END, 0,
           (x.v ->> 'timeout'::text)::bigint, CASE WHEN x.held THEN t.now END,
           CASE WHEN EXISTS (SELECT 1 FROM {schema}.signal g
                              WHERE g.shard = {1} AND g.workspace = ok.workspace AND g.run = ok.run AND g.type = x.v ->> 'signal'::text AND g.taken IS NULL
                                AND g.id <> coalesce(ok.plan ->> 'signal'::text, '')) THEN t.now
                WHEN x.v ->> 'at'::text IS NOT NULL THEN pg_catalog.to_timestamp((x.v ->> 'at'::text)::numeric / 1000::numeric)
                ELSE t.now + (x.v ->> 'due'::text)::bigint::float8 * interval '1 ms' END,
           t.now + (x.v ->> 'wait'::text)::bigint::float8 * interval '1 ms', (x.v ->> 'begun'::text)::bigint, false, x.v ->> 'safety'::text, x.v ->> 'unknown'::text, x.v ->> 'signal'::text, t.now,
           CASE WHEN x.v ->> 'status'::text <> 'PENDING' THEN t.now END, CASE WHEN (x.v ->> 'over'::text)::boolean THEN t.now END
      FROM t, ok CROSS JOIN LATERAL (
           SELECT e.v, (e.v ->> 'held'::text)::boolean AS held FROM pg_catalog.json_array_elements(ok.plan -> 'add'::text) AS e(v)) AS x
    RETURNING shard, workspace, run, until
)
