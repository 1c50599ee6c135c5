-- Approvals, behind one of them: of a status.
-- ?1 shard, ?2 workspace, behind: ?3 run, ?4 step, ?5 visit; ?6 status ('' for any), ?7 limit
-- do
SELECT a.run, a.step, a.visit, a.prompt, a.requesters, a.status, coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content, ''),
       coalesce(a.expires_at, 0), coalesce(a.expires_at <= {now}, 0), a.created_at, coalesce(a.decided_at, 0)
  FROM holdfast_approval AS a
 WHERE a.shard = ?1 AND a.workspace = ?2 AND (a.run, a.step, a.visit) > (?3, ?4, ?5) AND (?6 = '' OR a.status = ?6)
 ORDER BY a.run, a.step, a.visit
 LIMIT +?7
