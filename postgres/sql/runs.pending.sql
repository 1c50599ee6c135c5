-- Approvals that nobody has decided yet, behind one of them.
-- $1 shard, $2 workspace, $3 one ('' for all), $4 status, which is pending, $5 run ('' for any), $6 behind, $7 limit
SELECT a.id, a.run, a.step, a.visit, a.prompt, a.requesters::text, a.status, coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content::text, ''),
       coalesce(a.expires_at, 'epoch'), coalesce(a.expires_at <= {now}, false), a.created_at, coalesce(a.decided_at, 'epoch')
  FROM {schema}.approval a
 WHERE a.shard = $1::smallint AND a.workspace = $2::text AND a.status = 'pending' AND ($3::text = '' OR a.id = $3) AND a.status = $4::text
   AND ($5::text = '' OR a.run = $5) AND a.id > $6::text
 ORDER BY a.id
 LIMIT $7::bigint
