-- The approvals of a run, behind one of them.
-- ?1 shard, ?2 workspace, ?3 run, behind: ?4 step, ?5 visit; ?6 status ('' for any), ?7 limit
-- do
SELECT a.run, a.step, a.visit, a.prompt, a.requesters, a.status, coalesce(a.actor, ''), coalesce(a.label, ''), coalesce(a.content, ''),
       coalesce(a.expires_at, 0), coalesce(a.expires_at <= {now}, 0), a.created_at, coalesce(a.decided_at, 0)
  FROM holdfast_approval AS a
 WHERE a.shard = ?1 AND a.workspace = ?2 AND a.run = ?3 AND (a.step, a.visit) > (?4, ?5) AND (?6 = '' OR a.status = ?6)
 ORDER BY a.step, a.visit
 LIMIT +?7
