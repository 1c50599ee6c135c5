-- Approvals that nobody has decided yet, behind one of them.
-- $1 shard, $2 workspace, behind: $3 run, $4 step, $5 visit; $6 status, which is pending, $7 limit
SELECT a.run, a.step, a.visit, a.prompt, a.requesters::text, a.status, coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content::text, ''),
       coalesce(a.expires_at, 'epoch'), coalesce(a.expires_at <= {now}, false), a.created_at, coalesce(a.decided_at, 'epoch')
  FROM {schema}.approval a
 WHERE a.shard = $1::smallint AND a.workspace = $2::text AND (a.run, a.step, a.visit) > ($3::text, $4::text, $5::bigint) AND a.status = 'pending' AND a.status = $6::text
 ORDER BY a.shard, a.workspace, a.run, a.step, a.visit
 LIMIT $7::bigint
