-- The approval that a plan requests.
asked AS (
    INSERT INTO {schema}.approval (shard, workspace, run, step, visit, prompt, requesters, status, expires_at, created_at)
    SELECT ok.shard, ok.workspace, ok.run, ok.plan -> 'ask'::text ->> 'step'::text, (ok.plan -> 'ask'::text ->> 'visit'::text)::bigint,
           ok.plan -> 'ask'::text ->> 'prompt'::text, ok.plan -> 'ask'::text -> 'requesters'::text, 'pending', t.now + (ok.plan -> 'ask'::text ->> 'within'::text)::bigint::float8 * interval '1 ms', t.now
      FROM t, ok
     WHERE ok.plan -> 'ask'::text ->> 'step'::text IS NOT NULL
)
