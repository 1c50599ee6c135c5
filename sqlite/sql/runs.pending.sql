-- Approvals that nobody has decided yet, behind one of them.
-- ?1 shard, ?2 workspace, behind: ?3 run, ?4 step, ?5 visit; ?6 status, which is pending, ?7 limit
-- do
SELECT a.run, a.step, a.visit, a.prompt, a.requesters, a.status, coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content, ''),
       coalesce(a.expires_at, 0), coalesce(a.expires_at <= {now}, 0), a.created_at, coalesce(a.decided_at, 0)
  FROM holdfast_approval AS a INDEXED BY holdfast_approval_pending
 WHERE a.shard = ?1 AND a.workspace = ?2 AND (a.run, a.step, a.visit) > (?3, ?4, ?5) AND a.status = 'pending' AND a.status = ?6
 ORDER BY a.run, a.step, a.visit
 LIMIT +?7
