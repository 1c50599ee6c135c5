-- Lists undecided approvals that have not expired, after a given one.
-- :status which is pending
SELECT a.run, a.step, a.visit, a.prompt, a.requesters::text, a.status, coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content::text, ''),
       coalesce(a.expires_at, 'epoch'), coalesce(a.expires_at <= {now}, false), a.created_at, coalesce(a.decided_at, 'epoch')
  FROM {schema}.approval a
 WHERE a.shard = :shard AND a.workspace = :workspace AND (a.run, a.step, a.visit) > (:run, :step, :visit) AND a.status = 'pending' AND a.status = :status
   AND (a.expires_at IS NULL OR a.expires_at > {now})
 ORDER BY a.shard, a.workspace, a.run, a.step, a.visit
 LIMIT :limit
