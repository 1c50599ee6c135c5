-- An approval.
-- $1 shard, $2 workspace, $3 run, $4 step, $5 visit
SELECT a.run, a.step, a.visit, a.prompt, a.requesters::text, a.status, coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content::text, ''),
       coalesce(a.expires_at, 'epoch'), coalesce(a.expires_at <= {now}, false), a.created_at, coalesce(a.decided_at, 'epoch')
  FROM {schema}.approval a
 WHERE a.shard = $1::smallint AND a.workspace = $2::text AND a.run = $3::text AND a.step = $4::text AND a.visit = $5::bigint
