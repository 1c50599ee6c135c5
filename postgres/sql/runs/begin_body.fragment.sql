-- The body of a step that begins with the plan.
body AS (
    INSERT INTO {schema}.effect AS x (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at)
    SELECT ok.shard, ok.workspace, ok.plan -> 'body'::text ->> 'operation'::text, '$body', 0, (ok.plan -> 'body'::text ->> 'epoch'::text)::bigint, 'begun', ok.plan -> 'body'::text ->> 'policy'::text, t.now
      FROM t, ok
     WHERE ok.plan -> 'body'::text ->> 'operation'::text IS NOT NULL
    ON CONFLICT (shard, workspace, operation, name, ordinal) DO UPDATE
       SET state = 'begun', epoch = excluded.epoch, policy = excluded.policy, begun_at = excluded.begun_at, result = NULL, ended_at = NULL
     WHERE x.state = 'notDone'
    RETURNING x.shard, x.workspace, x.operation
)
