-- Lists undecided approvals that have not expired, after a given one.
SELECT a.run, a.step, a.visit, a.prompt, a.requesters, a.status, coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content, ''),
       coalesce(a.expires_at, 0), coalesce(a.expires_at <= {now}, 0), a.created_at, coalesce(a.decided_at, 0)
  FROM holdfast_approval AS a INDEXED BY holdfast_approval_pending
 WHERE a.shard = :shard AND a.workspace = :workspace AND (a.run, a.step, a.visit) > (:run, :step, :visit) AND a.status = 'pending' AND a.status = :status
   AND (a.expires_at IS NULL OR a.expires_at > {now})
 ORDER BY a.run, a.step, a.visit
 LIMIT :limit
