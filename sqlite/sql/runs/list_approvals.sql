-- Lists approvals of a status, after a given one.
SELECT a.run, a.step, a.visit, a.prompt, a.requesters, a.status, coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content, ''),
       coalesce(a.expires_at, 0), coalesce(a.expires_at <= {now}, 0), a.created_at, coalesce(a.decided_at, 0)
  FROM holdfast_approval AS a
 WHERE a.shard = :shard AND a.workspace = :workspace AND (a.run, a.step, a.visit) > (:run, :step, :visit) AND (:status = '' OR :status = CASE WHEN a.status = 'pending' AND a.expires_at <= {now} THEN 'expired' ELSE a.status END)
 ORDER BY a.run, a.step, a.visit
 LIMIT :limit
