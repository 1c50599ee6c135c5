-- Lists approvals of a status, after a given one.
-- :status ('' for any); a pending approval past its expiry counts as expired, although that is stored later
SELECT a.run, a.step, a.visit, a.prompt, a.requesters::text, a.status, coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content::text, ''),
       coalesce(a.expires_at, 'epoch'), coalesce(a.expires_at <= {now}, false), a.created_at, coalesce(a.decided_at, 'epoch')
  FROM {schema}.approval a
 WHERE a.shard = :shard AND a.workspace = :workspace AND (a.run, a.step, a.visit) > (:run, :step, :visit) AND (:status = '' OR :status = CASE WHEN a.status = 'pending' AND a.expires_at <= {now} THEN 'expired' ELSE a.status END)
 ORDER BY a.shard, a.workspace, a.run, a.step, a.visit
 LIMIT :limit
